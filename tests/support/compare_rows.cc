#include "support/compare_rows.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

namespace halfbyte::test {

void ExpectRowsClose(const std::vector<float>& got, const std::vector<float>& want, int64_t rows, const RowBound& bound) {
  ASSERT_EQ(got.size(), want.size());
  if (rows == 0) return;
  const size_t cols = got.size() / static_cast<size_t>(rows);
  int64_t above_tight = 0, above_loose = 0;
  double worst = 0;
  for (size_t r = 0; r < static_cast<size_t>(rows); ++r) {
    double diff = 0, norm = 0;
    for (size_t i = r * cols; i < (r + 1) * cols; ++i) {
      diff += (static_cast<double>(got[i]) - want[i]) * (static_cast<double>(got[i]) - want[i]);
      norm += static_cast<double>(want[i]) * want[i];
    }
    diff = std::sqrt(diff);
    norm = std::sqrt(norm);
    above_tight += !(diff <= bound.tight * norm + kFloor);  // a NaN is above everything
    above_loose += !(diff <= bound.loose * norm + kFloor);
    worst = std::max(worst, diff / (norm + kFloor));
  }
  const auto allowed = bound.exceptions > 0 ? std::max<int64_t>(1, static_cast<int64_t>(bound.exceptions * static_cast<double>(rows))) : 0;
  EXPECT_LE(above_tight, allowed) << "rows of " << rows << " above " << bound.tight << ", the worst at " << worst;
  EXPECT_EQ(above_loose, 0) << "rows of " << rows << " above " << bound.loose << ", the worst at " << worst;
}

void ExpectWithin(const std::vector<float>& got, const std::vector<float>& want, const std::vector<double>& bound) {
  ASSERT_EQ(got.size(), want.size());
  ASSERT_EQ(got.size(), bound.size());
  size_t bad = 0, first = 0;
  for (size_t i = 0; i < got.size(); ++i)
    if (!(std::abs(static_cast<double>(got[i]) - want[i]) <= bound[i] + kFloor) && bad++ == 0) first = i;
  if (bad > 0)
    ADD_FAILURE() << bad << " of " << got.size() << " values are off, the first at " << first << ": " << got[first] << ", wanted " << want[first]
                  << " +- " << bound[first];
}

bool SameBits(const float* a, const float* b, int64_t n) { return n == 0 || std::memcmp(a, b, static_cast<size_t>(n) * sizeof(float)) == 0; }

void ExpectSameBits(const std::vector<float>& got, const std::vector<float>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i)
    if (!SameBits(&got[i], &want[i], 1)) {
      ADD_FAILURE() << what << ": bits differ, the first at " << i << ": " << got[i] << " and " << want[i];
      return;
    }
}

}  // namespace halfbyte::test
