#include "numerics/activation_quantizer.h"

#include <cstring>

#include "base/check.h"

namespace halfbyte::numerics {
namespace {

void QuantizeRow(const float* x, int64_t cols, float gs, uint8_t* codes, uint8_t* scales) {
  for (int64_t b = 0; b < cols / kBlock; ++b) {
    const Nvfp4Block block = QuantizeBlockPlain(BlockInput(x + b * kBlock, kBlock), gs);
    std::memcpy(codes + b * (kBlock / 2), block.codes.data(), kBlock / 2);
    scales[b] = block.scale;
  }
}

float MaxMagnitude(const float* x, int64_t n) {
  float amax = 0;
  for (int64_t i = 0; i < n; ++i) amax = std::max(amax, Magnitude(x[i]));
  return amax;
}

}  // namespace

void QuantizeActivationPerTensor(const float* x, int64_t rows, int64_t cols, float input_scale, uint8_t* codes, uint8_t* scales) {
  HB_CHECK(cols % kBlock == 0 && input_scale > 0, cols, " columns, input scale ", input_scale);
  for (int64_t r = 0; r < rows; ++r) {
    QuantizeRow(x + r * cols, cols, 1.0f / input_scale, codes + r * (cols / 2), scales + r * (cols / kBlock));
  }
}

void QuantizeActivationPerToken(const float* x, int64_t rows, int64_t cols, uint8_t* codes, uint8_t* scales, float* row_scales) {
  HB_CHECK(cols % kBlock == 0, cols, " columns are not a multiple of 16");
  for (int64_t r = 0; r < rows; ++r) {
    const RowScale scale = RowScaleFor(MaxMagnitude(x + r * cols, cols));
    QuantizeRow(x + r * cols, cols, scale.encode, codes + r * (cols / 2), scales + r * (cols / kBlock));
    row_scales[r] = scale.decode;
  }
}

void QuantizeActivationInt8(const float* x, int64_t rows, int64_t cols, int8_t* codes, float* scales) {
  HB_CHECK(cols % kBlock == 0, cols, " columns are not a multiple of 16");
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t g = 0; g < Int8Groups(cols); ++g) {
      const int64_t begin = r * cols + g * kInt8Group;
      const int64_t n = std::min<int64_t>(kInt8Group, cols - g * kInt8Group);
      const float scale = Int8Scale(MaxMagnitude(x + begin, n));
      scales[r * Int8Groups(cols) + g] = scale;
      for (int64_t i = begin; i < begin + n; ++i) codes[i] = Int8Code(x[i], scale);
    }
  }
}

}  // namespace halfbyte::numerics
