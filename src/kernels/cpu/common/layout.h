// How the `cpu` backend keeps dense matrices, the same for every instruction set.
//
// Rows are grouped in panels of 16 (N is padded with zero rows); inside a panel the 16 rows of one step along K lie side by side,
// so that one 64-byte vector feeds 16 independent sums and a product streams each panel from its first byte to its last. Sums
// therefore run along K in one chain per output, whatever the number of rows of x: GEMV and GEMM share the order.
//
//   kF32     [panel][k][16] float
//   kBf16    [panel][k/2][16][2] bfloat16: a 32-bit lane holds a row's pair (k, k+1), as vdpbf16ps wants it
//   kFp8     [panel][k/4][16][4] E4M3 bytes, a lane's bytes in the order k+2, k, k+3, k+1: the high bytes of its two 16-bit words
//            are the pair (k, k+1), the low bytes the pair (k+2, k+3), so that two shifts and masks give two BF16 pair vectors
//   kNvfp4   [panel][k/64]{ scales [4 blocks][16 rows] E4M3; codes [4 blocks][2][16 rows] uint32 }: 576 bytes for 64 k. In the
//            vector v of a block a row's lane holds code k = 8v + 2j in bits 4j.. and code k = 8v + 2j + 1 in bits 16 + 4j..
#pragma once

#include <cstddef>
#include <cstdint>

namespace halfbyte::kernels::cpu {

inline constexpr int64_t kPanelRows = 16;
inline constexpr int64_t kRawBytes = 64;  // what a kernel loads of a panel at once
inline constexpr int64_t kNvfp4GroupBytes = 576;
inline constexpr int64_t kSmallCodeGroup = 16;  // columns: 3 in 100 groups hold a subnormal code; of 64 columns it would be 12

enum class LinearKind : uint8_t { kF32, kBf16, kFp8, kNvfp4 };
inline constexpr int kLinearKinds = 4;

// What a kernel sees of a packed matrix. Plain data: kernel files are compiled for machines that this process may not have, and
// must not instantiate shared inline functions.
struct LinearView {
  LinearKind kind = LinearKind::kBf16;
  int64_t n = 0, k = 0;
  int64_t k_padded = 0;  // k as stored: a multiple of 1, 2, 4, 64 by kind; the padding is zero
  int64_t panels = 0;    // ceil(n / 16)
  int64_t panel_bytes = 0;
  const std::byte* data = nullptr;
  // FP8: value = code * scale. One scale for every scale_k columns: [panel][k/scale_k] where a panel's rows share it,
  // [panel][k/scale_k][16] otherwise.
  const float* scales = nullptr;
  bool scale_per_row = false;
  int64_t scale_k = 0;  // columns a scale covers, a multiple of 4 (or all of k_padded)
  int64_t scale_blocks = 0;
  // FP8: bit g % 64 of word [panel][g / 64] says that the columns [16 g, 16 g + 16) of a panel hold codes of exponent 0 (zero or
  // subnormal; about 1 in 8,000 of a real model's), which need the slower decoding.
  const uint64_t* small_codes = nullptr;
  int64_t small_words = 0;
  float outer = 1.0f;  // NVFP4: weight_scale_2
};

// x of a product is packed in tiles of up to `tile_rows` rows (the last tile has what is left): F32 [k][rows of the tile], or
// BF16 pairs [k/2][rows of the tile], or BF16 in steps [k/32][32 rows][32] (tiles of 32 rows, a last one whole as well). k is padded with zeros to a multiple of
// 64, which suits every kind.
inline constexpr int64_t kPackedDepth = 64;
inline constexpr int64_t PaddedDepth(int64_t k) { return (k + kPackedDepth - 1) / kPackedDepth * kPackedDepth; }

}  // namespace halfbyte::kernels::cpu
