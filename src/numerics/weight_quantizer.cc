#include "numerics/weight_quantizer.h"

#include <cstring>

#include "base/check.h"

namespace halfbyte::numerics {

GlobalScale GlobalScaleFor(const WeightContract& contract, float amax) {
  HB_CHECK(amax >= 0 && amax <= kFloatMax, "amax ", amax, " of a matrix that should have been refused");
  switch (contract.method) {
    case WeightMethod::kFourOverSix:
    case WeightMethod::kPlain:
      return {amax, OnlineWs2(amax, contract.m)};
    case WeightMethod::kModelopt:
    case WeightMethod::kModeloptStatic:
    case WeightMethod::kModeloptFourOverSix:
    case WeightMethod::kModeloptSweep:
      break;
  }
  return {amax, ModeloptWs2(amax, contract.flavour, contract.m)};
}

AmaxResult Amax(std::span<const float> x) {
  AmaxResult result;
  for (float v : x) {
    const float magnitude = Magnitude(v);
    if (magnitude != magnitude) {
      ++result.nan_count;
    } else if (magnitude > kFloatMax) {
      ++result.inf_count;
    } else {
      result.amax = std::max(result.amax, magnitude);
    }
  }
  return result;
}

AmaxResult Merge(const AmaxResult& a, const AmaxResult& b) {
  return {std::max(a.amax, b.amax), a.nan_count + b.nan_count, a.inf_count + b.inf_count};
}

Nvfp4Block QuantizeBlock(const WeightContract& contract, BlockInput x, const GlobalScale& scale) {
  const bool zero_tensor = scale.amax == 0;
  switch (contract.method) {
    case WeightMethod::kFourOverSix:
      return QuantizeBlockFourOverSix(x, 1.0f / scale.ws2, contract.norm, contract.form);
    case WeightMethod::kPlain:
      return QuantizeBlockPlain(x, 1.0f / scale.ws2);
    case WeightMethod::kModeloptStatic:
      if (zero_tensor) break;
      return QuantizeBlockModeloptStatic(x, scale.amax, scale.ws2, contract.m, contract.flavour);
    case WeightMethod::kModeloptFourOverSix:
      if (zero_tensor) break;
      return QuantizeBlockModeloptFourOverSix(x, scale.amax, scale.ws2, contract.flavour);
    case WeightMethod::kModeloptSweep:
      if (zero_tensor) break;
      return QuantizeBlockModeloptSweep(x, scale.amax, scale.ws2);
    case WeightMethod::kModelopt:
      break;
  }
  return QuantizeBlockModelopt(x, scale.ws2);
}

void QuantizeMatrix(const WeightContract& contract, const float* x, int64_t rows, int64_t cols, const GlobalScale& scale,
                    uint8_t* codes, uint8_t* scales) {
  HB_CHECK(cols % kBlock == 0, cols, " columns are not a multiple of 16");
  const int64_t blocks = rows * cols / kBlock;
  for (int64_t b = 0; b < blocks; ++b) {
    const Nvfp4Block block = QuantizeBlock(contract, BlockInput(x + b * kBlock, kBlock), scale);
    std::memcpy(codes + b * (kBlock / 2), block.codes.data(), kBlock / 2);
    scales[b] = block.scale;
  }
}

}  // namespace halfbyte::numerics
