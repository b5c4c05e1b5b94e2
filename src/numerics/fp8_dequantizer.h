// FP8 checkpoints: value = FP8 element * scale, in FP32. All layouts are one: a matrix of scales, each over a rectangle of elements.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/dtype.h"

namespace halfbyte::numerics {

// Element (r, c) uses values[(r / block_rows) * scale_cols + c / block_cols]; edge rectangles may be ragged. The block size is the
// configuration's, never rows / scale rows: with 200 rows and two scale rows the border is at 128, not at 100 (user case T06).
struct Fp8Scales {
  const float* values;  // F32; BF16, E8M0 or int32-packed UE8M0 scales are converted first (exact)
  int64_t block_rows, block_cols;
  int64_t scale_cols;
};

// One scale for the tensor, one per row, or rectangles: how to view each of them.
constexpr Fp8Scales Fp8PerTensor(const float* scale, int64_t rows, int64_t cols) { return {scale, rows, cols, 1}; }
constexpr Fp8Scales Fp8PerRow(const float* scales, int64_t cols) { return {scales, 1, cols, 1}; }
constexpr Fp8Scales Fp8PerBlock(const float* scales, int64_t cols, int64_t block_rows, int64_t block_cols) {
  return {scales, block_rows, block_cols, (cols + block_cols - 1) / block_cols};
}

// The value of an FP8 byte (dtype kF8E4M3 or kF8E5M2).
float Fp8ToFloat(uint8_t code, tensor::DType dtype);

// elements U8 [rows, cols] -> out F32 [rows, cols], rn(fp32(element) * scale): the value of a tensor that stays FP8. A tensor that
// becomes NVFP4 is rounded to BF16 after this (RoundToBf16), as ModelOpt's and SGLang's conversions do.
// Only rows [first_row, first_row + count) are written (to out's beginning), so that a large matrix can be taken in pieces.
void DequantizeFp8(const uint8_t* elements, tensor::DType dtype, int64_t cols, const Fp8Scales& scales, int64_t first_row,
                   int64_t count, float* out);

// Packed UE8M0: four E8M0 bytes in an int32, lowest byte first (DeepGEMM's layout). out F32 [words.size() * 4].
void UnpackUe8m0(std::span<const uint32_t> words, float* out);

}  // namespace halfbyte::numerics
