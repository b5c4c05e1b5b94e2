// NVFP4 and BF16 weights by BF16 rows with vdpbf16ps. Two forms for NVFP4:
//
// Generated rows (one or a few an expert, bound by memory): codes go through vpermw straight into the dot product. "Shift right by 4s" leaves the
// codes of a pair in the low bits of the two words of a lane; vpermw looks at 5 bits, so the table of 16 BF16 values is repeated once and the bit
// above a nibble does not matter. The scale comes after the block: acc = fma(f, scale, acc), f = the sum over the block, made of two chains of four.
// 8 permutes, 8 dot products, 6 shifts, 6 for scale and sums a block of 16 x 16 weights (144 bytes) and row.
//
// Prompt rows: 256 inner values of both tiles are decoded to BF16 with their block scales, exactly (E2M1 x E4M3 has 6 significant bits), into 16 KiB of L1
// and all rows meet them as a plain BF16 matrix, 12 rows x 2 tiles at a time: 24 accumulators. A sum is one chain over the pairs of k.
//
// vdpbf16ps flushes subnormals; sums and weights are far above, and a row of values below 1e-38 is zero to the model.
#include <immintrin.h>

#include "kernels/cpu/moe/decode_bf16.h"
#include "kernels/cpu/moe/kernel.h"

namespace halfbyte::kernels::cpu::moe {
namespace {

inline __m512 DotPair(__m512 sum, __m512i weights, int32_t row_pair) {
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(weights), reinterpret_cast<__m512bh>(_mm512_set1_epi32(row_pair)));
}

// --- generated rows ---------------------------------------------------------------------------------------------------------

constexpr int kFewRows = 8;

template <int R>
void FewRowsBlock(const std::byte* tile, int64_t k, const std::byte* const* rows, float* sums) {
  const __m512i table = Bf16Table();
  const int32_t* x[R];
  __m512 acc[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    x[r] = reinterpret_cast<const int32_t*>(rows[r]);
    acc[r] = _mm512_setzero_ps();
  }
  for (int64_t b = 0; b < k / kG; ++b) {
    const std::byte* group = tile + b / 4 * Nvfp4GroupBytes();
    if (b % 4 == 0) PrefetchGroup(group);
    const __m512i c0 = _mm512_load_si512(group + b % 4 * 128), c1 = _mm512_load_si512(group + b % 4 * 128 + 64);
    const __m512 scale = E4m3Scaled(group + 512 + b % 4 * kTile);
    __m512i w[8];
#pragma GCC unroll 4
    for (int s = 0; s < 4; ++s) {
      w[s] = _mm512_permutexvar_epi16(_mm512_srli_epi32(c0, 4 * s), table);
      w[4 + s] = _mm512_permutexvar_epi16(_mm512_srli_epi32(c1, 4 * s), table);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      __m512 f0 = _mm512_setzero_ps(), f1 = _mm512_setzero_ps();
#pragma GCC unroll 4
      for (int s = 0; s < 4; ++s) {
        f0 = DotPair(f0, w[s], x[r][b * 8 + s]);
        f1 = DotPair(f1, w[4 + s], x[r][b * 8 + 4 + s]);
      }
      acc[r] = _mm512_fmadd_ps(_mm512_add_ps(f0, f1), scale, acc[r]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) _mm512_storeu_ps(sums + r * kPair, _mm512_mul_ps(acc[r], _mm512_set1_ps(256.0f)));
}

using FewRowsFn = void (*)(const std::byte*, int64_t, const std::byte* const*, float*);
constexpr FewRowsFn kFewRowsBlocks[kFewRows + 1] = {nullptr,         FewRowsBlock<1>, FewRowsBlock<2>, FewRowsBlock<3>, FewRowsBlock<4>,
                                                    FewRowsBlock<5>, FewRowsBlock<6>, FewRowsBlock<7>, FewRowsBlock<8>};

void GemmFewRows(const GemmCall& c) {
  for (int64_t r = 0; r < c.m; r += kFewRows) {
    const int64_t n = c.m - r < kFewRows ? c.m - r : kFewRows;
    for (int t = 0; t < 2; ++t) kFewRowsBlocks[n](c.w[t].data, c.k, c.rows + r, c.sums + r * kPair + t * kTile);
  }
}

// --- prompt rows ------------------------------------------------------------------------------------------------------------

constexpr int kRows = 12;
constexpr int64_t kPiece = 256;

// sums (+)= rows[.][k_begin ...] . panels, by pairs of inner values. kFromMemory: weights are read for the first time, so ask for them ahead.
template <int R, bool kFromMemory>
void Block(const std::byte* w0, const std::byte* w1, int64_t k_begin, int64_t pairs, const std::byte* const* rows, float* sums) {
  const int32_t* x[R];
  __m512 acc[R][2];
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
    x[r] = reinterpret_cast<const int32_t*>(rows[r]) + k_begin / 2;
    acc[r][0] = k_begin == 0 ? _mm512_setzero_ps() : _mm512_loadu_ps(sums + r * kPair);
    acc[r][1] = k_begin == 0 ? _mm512_setzero_ps() : _mm512_loadu_ps(sums + r * kPair + kTile);
  }
  const auto step = [&](int64_t p) __attribute__((always_inline)) {
    const __m512i a = _mm512_load_si512(w0 + p * 64), b = _mm512_load_si512(w1 + p * 64);
    if constexpr (kFromMemory) {
      PrefetchAhead(w0 + p * 64);
      PrefetchAhead(w1 + p * 64);
    }
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      acc[r][0] = DotPair(acc[r][0], a, x[r][p]);
      acc[r][1] = DotPair(acc[r][1], b, x[r][p]);
    }
  };
  // Four at a time: with more rows than general registers g++ keeps pointers in vector registers and fetches them in every turn.
  int64_t p = 0;
  for (; p + 4 <= pairs; p += 4) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) step(p + j);
  }
  for (; p < pairs; ++p) step(p);
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
    _mm512_storeu_ps(sums + r * kPair, acc[r][0]);
    _mm512_storeu_ps(sums + r * kPair + kTile, acc[r][1]);
  }
}

using BlockFn = void (*)(const std::byte*, const std::byte*, int64_t, int64_t, const std::byte* const*, float*);
template <bool kFromMemory>
struct Blocks {
  template <int R> static constexpr BlockFn kOf = Block<R, kFromMemory>;
  static constexpr BlockFn kBy[kRows + 1] = {nullptr, kOf<1>, kOf<2>, kOf<3>, kOf<4>, kOf<5>, kOf<6>, kOf<7>, kOf<8>, kOf<9>, kOf<10>, kOf<11>, kOf<12>};
};

void Gemm(const GemmCall& c) {
  alignas(64) std::byte panels[2][kPiece * kTile * 2];
  for (int64_t k = 0; k < c.k; k += kPiece) {
    const int64_t end = k + kPiece < c.k ? k + kPiece : c.k;
    const std::byte* w[2];
    for (int t = 0; t < 2; ++t) {
      const TileRef& tile = c.w[t];
      w[t] = tile.decode ? panels[t] : tile.data + k * kTile * 2;
      if (tile.decode) tile.decode({tile.data, c.k, k, end, 0, false, panels[t]});
    }
    for (int64_t r = 0; r < c.m; r += kRows) {
      const int64_t n = c.m - r < kRows ? c.m - r : kRows;
      const bool from_memory = r == 0 && !c.w[0].decode;
      (from_memory ? Blocks<true>::kBy : Blocks<false>::kBy)[n](w[0], w[1], k, (end - k + 1) / 2, c.rows + r, c.sums + r * kPair);
    }
  }
}

constexpr MoeKernel kKernels[] = {
    {"moe_gemv_nvfp4_bf16_avx512bf16", Isa::kAvx512Bf16, WeightKind::kNvfp4, RowFormat::kBf16, nullptr, GemmFewRows, 2, 6, true},
    {"moe_gemm_nvfp4_bf16_avx512bf16", Isa::kAvx512Bf16, WeightKind::kNvfp4, RowFormat::kBf16, DecodeNvfp4ToBf16, Gemm, 5, 3, true},
    // Read as packed; the same order of sums in both classes.
    {"moe_gemm_bf16_bf16_avx512bf16", Isa::kAvx512Bf16, WeightKind::kBf16, RowFormat::kBf16, nullptr, Gemm, 5, 6, true},
};

}  // namespace

MoeKernelList MoeKernelsAvx512Bf16() { return {kKernels, sizeof kKernels / sizeof kKernels[0]}; }

}  // namespace halfbyte::kernels::cpu::moe
