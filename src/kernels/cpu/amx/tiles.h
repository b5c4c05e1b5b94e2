// What the AMX kernels share: the shape of the eight tiles, and 32 rows by 32 columns of sums. Internal linkage: every file that includes this is compiled
// for its own instruction set.
//
// TDPBF16PS multiplies 16 rows of 32 inner values (1 KiB, a row of 64 bytes each) by 32 inner values of 16 columns, laid out as pairs
// [k/2][column][2] (1 KiB), in 16 cycles. Two by two tiles of sums need 4 tile loads for 4 products.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace halfbyte::kernels::cpu {
namespace {

constexpr int64_t kAmxStep = 32;         // inner values of a product
constexpr int64_t kAmxRows = 32;         // of a block of sums
constexpr int64_t kAmxColumns = 32;
constexpr int64_t kAmxTileBytes = 1024;  // of a step of 16 rows, and of 16 columns

struct alignas(64) AmxConfig {
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t column_bytes[16] = {};
  uint8_t rows[16] = {};
};

// Tiles 0..3: sums; 4, 5: rows; 6, 7: weights. `depth`: inner values of a step, even; fewer than 32 at the end of an inner length.
constexpr AmxConfig AmxShape(int depth) {
  AmxConfig c;
  for (int i = 0; i < 8; ++i) {
    c.column_bytes[i] = static_cast<uint16_t>(i == 4 || i == 5 ? depth * 2 : 64);
    c.rows[i] = static_cast<uint8_t>(i >= 6 ? depth / 2 : 16);
  }
  return c;
}

// Sums in memory: F32 [32][32].
inline constexpr int64_t kAmxSumStride = kAmxColumns * 4;
// `two`: more than 16 rows.
inline void AmxBegin(bool first, bool two, const float* sums) {
  if (first) {
    _tile_zero(0); _tile_zero(1); _tile_zero(2); _tile_zero(3);
    return;
  }
  const float* lower = sums + 16 * kAmxColumns;
  _tile_loadd(0, sums, kAmxSumStride);
  _tile_loadd(1, sums + 16, kAmxSumStride);
  if (two) {
    _tile_loadd(2, lower, kAmxSumStride);
    _tile_loadd(3, lower + 16, kAmxSumStride);
  }
}
// One step: rows at x and `lower` (16 rows on), `stride` bytes apart; weights of both column tiles.
inline void AmxStepBy(const std::byte* x, const std::byte* lower, int64_t stride, const std::byte* w0, const std::byte* w1, bool two) {
  _tile_loadd(6, w0, 64);
  _tile_loadd(7, w1, 64);
  _tile_loadd(4, x, stride);
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  if (two) {
    _tile_loadd(5, lower, stride);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
}
inline void AmxEnd(bool two, float* sums) {
  float* lower = sums + 16 * kAmxColumns;
  _tile_stored(0, sums, kAmxSumStride);
  _tile_stored(1, sums + 16, kAmxSumStride);
  if (two) {
    _tile_stored(2, lower, kAmxSumStride);
    _tile_stored(3, lower + 16, kAmxSumStride);
  }
}

}  // namespace
}  // namespace halfbyte::kernels::cpu
