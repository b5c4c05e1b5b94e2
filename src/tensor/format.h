// Format: the only answer to "what do these bits mean?" (design: numeric contracts).
//
// A matrix is [rows, cols], cols being the contraction axis (K). Its value is
//     element * block scale (one for each block_rows x block_cols patch) * outer scale.
// Formats in use:
//   F32, BF16, F16          elements only
//   FP8 128x128 F32         E4M3 * one F32 for each 128x128 patch (edge patches are partial)
//   FP8 per row / tensor    E4M3 * F32 outer
//   NVFP4                   E2M1 * one E4M3 for each 1x16 * F32 outer: per tensor (weights, static activations), per row (per-token activations)
//   MXFP4                   E2M1 * one E8M0 for each 1x32
//   INT8 groups             INT8 * one F32 for each 1x32 (activations of w4a8)
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tensor/dtype.h"

namespace halfbyte::tensor {

enum class Outer : uint8_t { kNone, kPerTensor, kPerRow };

struct Format {
  DType elem = DType::kBF16;
  std::optional<DType> block_scale;  // none: no block scales
  int32_t block_rows = 0, block_cols = 0;
  Outer outer = Outer::kNone;

  static Format Plain(DType d) { return {d, std::nullopt, 0, 0, Outer::kNone}; }
  static Format Bf16() { return Plain(DType::kBF16); }
  static Format F32() { return Plain(DType::kF32); }
  static Format Nvfp4(Outer outer = Outer::kPerTensor) { return {DType::kF4, DType::kF8E4M3, 1, 16, outer}; }
  static Format Mxfp4() { return {DType::kF4, DType::kF8E8M0, 1, 32, Outer::kNone}; }
  static Format Fp8Block(int32_t rows, int32_t cols) { return {DType::kF8E4M3, DType::kF32, rows, cols, Outer::kNone}; }
  static Format Fp8(Outer outer) { return {DType::kF8E4M3, std::nullopt, 0, 0, outer}; }
  static Format Int8Groups() { return {DType::kI8, DType::kF32, 1, 32, Outer::kNone}; }

  bool is_plain() const { return !block_scale && outer == Outer::kNone; }
  bool is_nvfp4() const { return elem == DType::kF4 && block_scale == DType::kF8E4M3; }
  bool is_fp8() const { return elem == DType::kF8E4M3 || elem == DType::kF8E5M2; }
  // "BF16", "NVFP4 1x16", "FP8 128x128", "FP8 per row", ...
  std::string ToString() const;
  // Bytes of a rows x cols matrix with all its scales, without any kernel's padding.
  int64_t Bytes(int64_t rows, int64_t cols) const;

  friend bool operator==(const Format&, const Format&) = default;
};

}  // namespace halfbyte::tensor
