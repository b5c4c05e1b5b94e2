#include "numerics/distortion.h"

#include <cmath>
#include <limits>

#include "base/check.h"

namespace halfbyte::numerics {

Distortion Measure(std::span<const float> got, std::span<const float> want) {
  HB_CHECK(got.size() == want.size(), got.size(), " values against ", want.size());
  double error = 0, got2 = 0, want2 = 0, dot = 0, largest = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double g = got[i], w = want[i], d = g - w;
    error += d * d;
    got2 += g * g;
    want2 += w * w;
    dot += g * w;
    if (!(std::abs(d) <= largest)) largest = std::abs(d);  // a NaN stays
  }
  Distortion result;
  result.relative_rmse = error == 0 ? 0.0 : std::sqrt(error / want2);
  result.sqnr_db = error == 0 ? std::numeric_limits<double>::infinity() : -20 * std::log10(result.relative_rmse);
  result.max_error = std::isnan(error) ? error : largest;
  result.cosine = got2 == 0 && want2 == 0 ? 1.0 : dot / std::sqrt(got2 * want2);
  return result;
}

}  // namespace halfbyte::numerics
