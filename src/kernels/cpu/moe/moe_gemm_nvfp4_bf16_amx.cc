// NVFP4 and BF16 weights by BF16 rows on AMX tiles (TDPBF16PS), for prompt rows.
//
// A BF16 panel [k/2][lane][2] is the layout that the second operand wants: 16 of its vectors are the tile for 32 inner values and 16 columns. Rows are
// the first operand; their records lie one stride apart (contiguous_rows). 2 x 2 tiles of sums (32 rows, 32 columns) for 4 tile loads and 4 products a
// step. 512 inner values of both weight tiles are decoded with their block scales into 32 KiB, then all rows meet them.
// A step has 32 inner values and a block scale spans 16, so INT8 tiles (64 inner values) could not apply the scales; BF16 with the scale decoded in is exact.
//
// A row's sum is one chain of tile products over k; sums wait in memory between pieces, which rounds nothing.
#include <immintrin.h>

#include "kernels/cpu/moe/decode_bf16.h"
#include "kernels/cpu/moe/kernel.h"

namespace halfbyte::kernels::cpu::moe {
namespace {

constexpr int64_t kPiece = 512;
constexpr int64_t kRows = 32;

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t column_bytes[16] = {};
  uint8_t rows[16] = {};
};

// Tiles 0..3: sums; 4, 5: rows; 6, 7: weights. `depth`: inner values of a step, 32, or 16 at the end of an inner length that is not a multiple of 32.
constexpr TileConfig Config(int depth) {
  TileConfig c;
  for (int i = 0; i < 8; ++i) {
    c.column_bytes[i] = static_cast<uint16_t>(i == 4 || i == 5 ? depth * 2 : 64);
    c.rows[i] = static_cast<uint8_t>(i >= 6 ? depth / 2 : 16);
  }
  return c;
}
constexpr TileConfig kFull = Config(32), kHalf = Config(16);

// 32 rows (16 where !two) by a piece of both weight tiles. sums: 32 rows of kPair.
void Block(const std::byte* rows, int64_t stride, const std::byte* w0, const std::byte* w1, int64_t steps, bool first, bool two, float* sums) {
  constexpr int64_t kSumStride = kPair * 4;
  float* lower = sums + 16 * kPair;
  if (first) {
    _tile_zero(0); _tile_zero(1); _tile_zero(2); _tile_zero(3);
  } else {
    _tile_loadd(0, sums, kSumStride);
    _tile_loadd(1, sums + kTile, kSumStride);
    if (two) {
      _tile_loadd(2, lower, kSumStride);
      _tile_loadd(3, lower + kTile, kSumStride);
    }
  }
  for (int64_t s = 0; s < steps; ++s) {
    _tile_loadd(6, w0 + s * 1024, 64);
    _tile_loadd(7, w1 + s * 1024, 64);
    _tile_loadd(4, rows + s * 64, stride);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if (two) {
      _tile_loadd(5, rows + 16 * stride + s * 64, stride);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, sums, kSumStride);
  _tile_stored(1, sums + kTile, kSumStride);
  if (two) {
    _tile_stored(2, lower, kSumStride);
    _tile_stored(3, lower + kTile, kSumStride);
  }
}

void Gemm(const GemmCall& c) {
  alignas(64) std::byte panels[2][kPiece * kTile * 2];
  const int64_t kp = RoundUp(c.k, kG), full = kp / 32 * 32, stride = c.m > 1 ? c.rows[1] - c.rows[0] : 64;
  for (int64_t k = 0; k < kp;) {
    const int64_t most = k < full ? full : kp, end = k + kPiece < most ? k + kPiece : most;
    const std::byte* w[2];
    for (int t = 0; t < 2; ++t) {
      const TileRef& tile = c.w[t];
      w[t] = tile.decode ? panels[t] : tile.data + k * kTile * 2;
      if (tile.decode) tile.decode({tile.data, c.k, k, end, 0, false, panels[t]});
    }
    _tile_loadconfig(k < full ? &kFull : &kHalf);  // sums are in memory at this point
    for (int64_t r = 0; r < c.m; r += kRows) {
      Block(c.rows[r] + k * 2, stride, w[0], w[1], (end - k + 31) / 32, k == 0, c.m - r > 16, c.sums + r * kPair);
    }
    k = end;
  }
  _tile_release();
}

constexpr MoeKernel kKernels[] = {
    {"moe_gemm_nvfp4_bf16_amx", Isa::kAmx, WeightKind::kNvfp4, RowFormat::kBf16, DecodeNvfp4ToBf16, Gemm, 8, 0, false, true},
    {"moe_gemm_bf16_bf16_amx", Isa::kAmx, WeightKind::kBf16, RowFormat::kBf16, nullptr, Gemm, 8, 0, false, true},
};

}  // namespace

MoeKernelList MoeKernelsAmx() { return {kKernels, sizeof kKernels / sizeof kKernels[0]}; }

}  // namespace halfbyte::kernels::cpu::moe
