// Activations entering an expert: NVFP4 with one static scale per tensor (modelopt_fp4) or one scale per row (nvfp4_online), and INT8
// in groups of 32 (w4a8). All are made at run time; the exact form, on x in FP32 as it is given (the caller rounds to BF16 or not).
#pragma once

#include <cstdint>

#include "numerics/block_quantizer.h"

namespace halfbyte::numerics {

// Per tensor (reference-behaviour 2.2): encode scale gs = rn(1 / input_scale), plain exact form.
// x F32 [rows, cols], cols % 16 == 0 -> codes U8 [rows, cols/2], scales U8 [rows, cols/16];
// x ~ code * scale * input_scale. input_scale > 0; 1.0 unless the checkpoint has one.
void QuantizeActivationPerTensor(const float* x, int64_t rows, int64_t cols, float input_scale, uint8_t* codes, uint8_t* scales);

struct RowScale {
  float encode;  // gs of the row's blocks
  float decode;  // stored: x ~ code * scale * decode
};

// Per token (reference-behaviour 2.3, exact), base b = rn(1/2688), r = max |row|:
//   encode = min(rn(rn(1/b) / r), FLT_MAX), 0 -> 1;  decode = rn(1 / encode).  r = 0: decode 0 (all scale bytes come out 0).
constexpr RowScale RowScaleFor(float row_amax) {
  if (row_amax == 0) return {.encode = kFloatMax, .decode = 0};
  const float inverse_base = 1.0f / kReciprocal2688;  // 2688 again in FP32; spelled as the contract has it
  float encode = std::min(inverse_base / row_amax, kFloatMax);
  if (encode == 0) encode = 1;
  return {.encode = encode, .decode = 1.0f / encode};
}

// row_scales F32 [rows] = RowScale::decode; the rest as above.
void QuantizeActivationPerToken(const float* x, int64_t rows, int64_t cols, uint8_t* codes, uint8_t* scales, float* row_scales);

inline constexpr int kInt8Group = 32;

// Number of groups of a row: the last one may have 16 columns.
constexpr int64_t Int8Groups(int64_t cols) { return (cols + kInt8Group - 1) / kInt8Group; }

// s = rn(amax / 127); code = rint(rn(x / s)) clamped to +-127, ties to even; a zero group (or one whose s is 0) has codes 0.
constexpr float Int8Scale(float amax) { return amax / 127.0f; }
constexpr int8_t Int8Code(float x, float scale) {
  if (scale == 0) return 0;
  const float q = std::min(std::max(x / scale, -127.0f), 127.0f);
  return static_cast<int8_t>((q + 0x1.8p23f) - 0x1.8p23f);  // the FPU rounds to an integer, ties to even
}

// w4a8: x F32 [rows, cols], cols % 16 == 0 -> codes I8 [rows, cols], scales F32 [rows, Int8Groups(cols)]; x ~ code * scale.
void QuantizeActivationInt8(const float* x, int64_t rows, int64_t cols, int8_t* codes, float* scales);

}  // namespace halfbyte::numerics
