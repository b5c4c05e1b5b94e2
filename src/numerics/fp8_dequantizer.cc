#include "numerics/fp8_dequantizer.h"

#include "base/check.h"
#include "numerics/e4m3.h"
#include "numerics/e5m2.h"
#include "numerics/e8m0.h"

namespace halfbyte::numerics {

float Fp8ToFloat(uint8_t code, tensor::DType dtype) {
  HB_CHECK(dtype == tensor::DType::kF8E4M3 || dtype == tensor::DType::kF8E5M2, tensor::DTypeName(dtype), " is not FP8");
  return dtype == tensor::DType::kF8E4M3 ? E4m3ToFloat(code) : E5m2ToFloat(code);
}

void DequantizeFp8(const uint8_t* elements, tensor::DType dtype, int64_t cols, const Fp8Scales& scales, int64_t first_row,
                   int64_t count, float* out) {
  for (int64_t r = first_row; r < first_row + count; ++r) {
    const float* row_scales = scales.values + r / scales.block_rows * scales.scale_cols;
    for (int64_t c = 0; c < cols; ++c) {
      out[(r - first_row) * cols + c] = Fp8ToFloat(elements[r * cols + c], dtype) * row_scales[c / scales.block_cols];
    }
  }
}

void UnpackUe8m0(std::span<const uint32_t> words, float* out) {
  for (uint32_t word : words) {
    for (int i = 0; i < 4; ++i) *out++ = E8m0ToFloat(static_cast<uint8_t>(word >> (8 * i)));
  }
}

}  // namespace halfbyte::numerics
