// NVFP4 and BF16 weights by BF16 rows on AMX tiles (TDPBF16PS), for prompt rows.
//
// A BF16 panel [k/2][lane][2] is the layout that the second operand wants: 16 of its vectors are the tile for 32 inner values and 16 columns. Rows are
// the first operand; their records lie one stride apart (contiguous_rows). 2 x 2 tiles of sums (32 rows, 32 columns) for 4 tile loads and 4 products a
// step. A step has 32 inner values and a block scale spans 16, so INT8 tiles (64 inner values) could not apply the scales; BF16 with the scale decoded in
// is exact.
//
// Work of a step at 32 rows: 4 products of 16 cycles = 64, and decoding 2 x 512 weights at 8 a cycle = 128. The tile unit and the vector ports work side by
// side, so the first 32 rows of a call decode the step ahead of the one they multiply: the out-of-order window (about a step) does both at once. Decoding
// pieces of 512 (32 KiB of L1) and multiplying then, tried: 14 % of the tile peak at 32 rows, and 25 % this way (one core of a Sapphire Rapids guest).
// Later rows read the piece as it was left: 256 inner values of both weight tiles, 16 KiB.
//
// A row's sum is one chain of tile products over k; sums wait in memory between pieces, which rounds nothing.
#include <immintrin.h>

#include "kernels/cpu/amx/tiles.h"
#include "kernels/cpu/moe/decode_bf16.h"
#include "kernels/cpu/moe/kernel.h"

namespace halfbyte::kernels::cpu::moe {
namespace {

constexpr int64_t kStep = kAmxStep, kPiece = 256;
constexpr int64_t kRows = kAmxRows;
constexpr int64_t kStepBytes = kAmxTileBytes;
static_assert(kPair == kAmxColumns);

constexpr AmxConfig kFull = AmxShape(32), kHalf = AmxShape(16);  // the half step stands at the end of an inner length that is no multiple of 32

// A piece of both weight tiles: BF16 in memory, or packed NVFP4 that is decoded into `panel` on the way.
struct Piece {
  const std::byte* bf16[2];
  const std::byte* packed[2];  // from the piece's first group on
  std::byte* panel[2];
};

// Decodes one step (32 inner values, two blocks) of both tiles into the panels.
inline void DecodeStep(const Piece& p, int64_t step, __m512i table) {
  const int64_t group = step / 2 * Nvfp4GroupBytes(), block = step % 2 * 2;
#pragma GCC unroll 2
  for (int t = 0; t < 2; ++t) {
    if (block == 0) PrefetchGroup(p.packed[t] + group);
#pragma GCC unroll 2
    for (int b = 0; b < 2; ++b) DecodeBlockToBf16(p.packed[t] + group, block + b, table, p.panel[t] + step * kStepBytes + b * 512);
  }
}

// 32 rows (16 where !two) by a piece of both weight tiles. sums: 32 rows of kPair.
template <bool kDecode>
void Block(const std::byte* rows, int64_t stride, const Piece& p, int64_t steps, bool first, bool two, float* sums) {
  const __m512i table = Bf16Table();
  if constexpr (kDecode) DecodeStep(p, 0, table);
  AmxBegin(first, two, sums);
  for (int64_t s = 0; s < steps; ++s) {
    if constexpr (kDecode) {
      if (s + 1 < steps) DecodeStep(p, s + 1, table);
    }
    AmxStepBy(rows + s * 64, rows + 16 * stride + s * 64, stride, p.bf16[0] + s * kStepBytes, p.bf16[1] + s * kStepBytes, two);
  }
  AmxEnd(two, sums);
}

void Gemm(const GemmCall& c) {
  alignas(64) std::byte panels[2][kPiece * kTile * 2];
  const int64_t kp = RoundUp(c.k, kG), full = kp / kStep * kStep, stride = c.m > 1 ? c.rows[1] - c.rows[0] : 64;
  const bool nvfp4 = c.w[0].decode != nullptr;
  for (int64_t k = 0; k < kp;) {
    const bool half = k >= full;  // the last 16
    const int64_t most = half ? kp : full, end = k + kPiece < most ? k + kPiece : most, steps = (end - k + kStep - 1) / kStep;
    Piece p;
    for (int t = 0; t < 2; ++t) {
      p.panel[t] = panels[t];
      p.packed[t] = c.w[t].data + k / kGroup * Nvfp4GroupBytes();
      p.bf16[t] = nvfp4 ? panels[t] : c.w[t].data + k * kTile * 2;
      if (nvfp4 && half) c.w[t].decode({c.w[t].data, c.k, k, end, 0, false, panels[t]});
    }
    _tile_loadconfig(half ? &kHalf : &kFull);  // sums are in memory at this point
    for (int64_t r = 0; r < c.m; r += kRows) {
      const auto block = nvfp4 && !half && r == 0 ? Block<true> : Block<false>;
      block(c.rows[r] + k * 2, stride, p, steps, k == 0, c.m - r > 16, c.sums + r * kPair);
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
