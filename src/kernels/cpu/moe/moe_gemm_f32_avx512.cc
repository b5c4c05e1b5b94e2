// FP32 arithmetic with AVX-512: the exact form (x in FP32), formats without a kernel of their own, and BF16 rows where vdpbf16ps is slow.
//
// Prompt rows: 128 inner values of both tiles are decoded to FP32 with their block scales (exact for NVFP4) into 16 KiB of L1, and all rows of the
// call meet them, 12 rows x 2 tiles at a time: 24 accumulators, 2 weight vectors and a broadcast in 32 registers. A row's sum is one chain
// of FMAs over k. (Decoding whole tiles first, 256 KiB at K = 2048, was tried: the stores to L2 cost 20 % of the GEMM at 32 rows.)
//
// Generated rows of NVFP4: codes through vpermps straight into the FMA, the scale once a block: acc = fma(f, scale, acc), f = the block's sum in two
// chains of eight. Decoding is shared by up to 8 rows.
#include <immintrin.h>

#include "kernels/cpu/moe/kernel.h"
#include "kernels/cpu/moe/vector_math_avx512.h"

namespace halfbyte::kernels::cpu::moe {
namespace {

// --- decoding ---------------------------------------------------------------------------------------------------------------

void DecodeNvfp4(const DecodeCall& c) {
  const __m512 values = E2m1Table();
  auto* out = reinterpret_cast<float*>(c.panel);
  for (int64_t b = c.k_begin / kG; b < c.k_end / kG; ++b, out += kG * kTile) {
    const std::byte* group = c.tile + b / 4 * Nvfp4GroupBytes();
    if (b % 4 == 0) PrefetchGroup(group);
    const __m512 scale = _mm512_mul_ps(E4m3Scaled(group + 512 + b % 4 * kTile), _mm512_set1_ps(256.0f));
    for (int v = 0; v < 2; ++v) {
      const __m512i codes = _mm512_load_si512(group + b % 4 * 128 + v * 64);
#pragma GCC unroll 4
      for (int s = 0; s < 4; ++s) {
        const __m512i even = _mm512_srli_epi32(codes, 4 * s), odd = _mm512_srli_epi32(codes, 16 + 4 * s);
        _mm512_store_ps(out + (8 * v + 2 * s) * kTile, _mm512_mul_ps(_mm512_permutexvar_ps(even, values), scale));
        _mm512_store_ps(out + (8 * v + 2 * s + 1) * kTile, _mm512_mul_ps(_mm512_permutexvar_ps(odd, values), scale));
      }
    }
  }
}

// By way of FP16, whose conversion takes subnormals at full speed: E5M2 is its upper half; E4M3, sign-extended to a word and shifted left by 7, is that FP16
// number times 2^-8 once the second copy of the sign (bit 14) is masked. (Shifting to FP32 directly gives FP32 subnormals: one product in ten took the
// processor's slow path on made-up data and the decoder 30 times as long. Gathers from a table took twice as long.)
void DecodeFp8(const DecodeCall& c) {
  const int64_t blocks = (c.k + c.block_cols - 1) / c.block_cols;
  const auto* scales = reinterpret_cast<const float*>(c.tile);
  const std::byte* codes = c.tile + blocks * kTile * 4;
  auto* out = reinterpret_cast<float*>(c.panel);
  for (int64_t k = c.k_begin; k < c.k_end;) {
    const int64_t block = k / c.block_cols, block_end = (block + 1) * c.block_cols < c.k_end ? (block + 1) * c.block_cols : c.k_end;
    const __m512 scale = _mm512_mul_ps(_mm512_loadu_ps(scales + block * kTile), _mm512_set1_ps(c.e5m2 ? 1.0f : 256.0f));
    for (; k < block_end; ++k, out += kTile) {
      if (k % 4 == 0) PrefetchAhead(codes + k * kTile);
      const __m256i words = _mm256_cvtepi8_epi16(_mm_load_si128(reinterpret_cast<const __m128i*>(codes + k * kTile)));
      const __m256i half = c.e5m2 ? _mm256_slli_epi16(words, 8) : _mm256_and_si256(_mm256_slli_epi16(words, 7), _mm256_set1_epi16(static_cast<short>(0xBFFF)));
      _mm512_store_ps(out, _mm512_mul_ps(_mm512_cvtph_ps(half), scale));
    }
  }
}

void DecodeBf16(const DecodeCall& c) {
  auto* out = reinterpret_cast<float*>(c.panel);
  for (int64_t p = c.k_begin / 2; p < (c.k_end + 1) / 2; ++p, out += 2 * kTile) {
    PrefetchAhead(c.tile + p * 64);
    const __m512i pair = _mm512_load_si512(c.tile + p * 64);
    _mm512_store_si512(out, _mm512_slli_epi32(pair, 16));
    _mm512_store_si512(out + kTile, _mm512_and_si512(pair, _mm512_set1_epi32(static_cast<int>(0xFFFF0000))));
  }
}

// --- prompt rows ------------------------------------------------------------------------------------------------------------

constexpr int kRows = 12;
constexpr int64_t kPiece = 128;

// sums (+)= rows[.][k_begin ...] . panels, n inner values.
template <int R>
void Block(const float* w0, const float* w1, int64_t k_begin, int64_t n, const std::byte* const* rows, float* sums) {
  const float* x[R];
  __m512 acc[R][2];
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
    x[r] = reinterpret_cast<const float*>(rows[r]) + k_begin;
    acc[r][0] = k_begin == 0 ? _mm512_setzero_ps() : _mm512_loadu_ps(sums + r * kPair);
    acc[r][1] = k_begin == 0 ? _mm512_setzero_ps() : _mm512_loadu_ps(sums + r * kPair + kTile);
  }
  const auto step = [&](int64_t i) __attribute__((always_inline)) {
    const __m512 a = _mm512_load_ps(w0 + i * kTile), b = _mm512_load_ps(w1 + i * kTile);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      const __m512 v = _mm512_set1_ps(x[r][i]);
      acc[r][0] = _mm512_fmadd_ps(a, v, acc[r][0]);
      acc[r][1] = _mm512_fmadd_ps(b, v, acc[r][1]);
    }
  };
  // Four at a time: with more rows than general registers g++ keeps pointers in vector registers and fetches them in every turn.
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) step(i + j);
  }
  for (; i < n; ++i) step(i);
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
    _mm512_storeu_ps(sums + r * kPair, acc[r][0]);
    _mm512_storeu_ps(sums + r * kPair + kTile, acc[r][1]);
  }
}

using BlockFn = void (*)(const float*, const float*, int64_t, int64_t, const std::byte* const*, float*);
constexpr BlockFn kBlocks[kRows + 1] = {nullptr,  Block<1>, Block<2>, Block<3>, Block<4>,  Block<5>, Block<6>,
                                        Block<7>, Block<8>, Block<9>, Block<10>, Block<11>, Block<12>};

void Gemm(const GemmCall& c) {
  alignas(64) float panels[2][kPiece * kTile];
  for (int64_t k = 0; k < c.k; k += kPiece) {
    const int64_t end = k + kPiece < c.k ? k + kPiece : c.k;
    const float* w[2];
    for (int t = 0; t < 2; ++t) {
      const TileRef& tile = c.w[t];
      w[t] = tile.decode ? panels[t] : reinterpret_cast<const float*>(tile.data) + k * kTile;
      if (tile.decode) tile.decode({tile.data, c.k, k, end, tile.block_cols, tile.e5m2, reinterpret_cast<std::byte*>(panels[t])});
    }
    for (int64_t r = 0; r < c.m; r += kRows) {
      const int64_t n = c.m - r < kRows ? c.m - r : kRows;
      kBlocks[n](w[0], w[1], k, end - k, c.rows + r, c.sums + r * kPair);
    }
  }
}

// --- generated rows of NVFP4 ------------------------------------------------------------------------------------------------

constexpr int kFewRows = 8;

template <int R>
void FewRowsBlock(const std::byte* tile, int64_t k, const std::byte* const* rows, float* sums) {
  const __m512 values = E2m1Table();
  const float* x[R];
  __m512 acc[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    x[r] = reinterpret_cast<const float*>(rows[r]);
    acc[r] = _mm512_setzero_ps();
  }
  for (int64_t b = 0; b < k / kG; ++b) {
    const std::byte* group = tile + b / 4 * Nvfp4GroupBytes();
    if (b % 4 == 0) PrefetchGroup(group);
    const __m512i c0 = _mm512_load_si512(group + b % 4 * 128), c1 = _mm512_load_si512(group + b % 4 * 128 + 64);
    const __m512 scale = E4m3Scaled(group + 512 + b % 4 * kTile);
    __m512 f[R][2];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) f[r][0] = f[r][1] = _mm512_setzero_ps();
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {  // value i of both vectors: nibble i/2 of the low (even) or high word
      const int shift = 4 * (i / 2) + 16 * (i % 2);
      const __m512 w0 = _mm512_permutexvar_ps(_mm512_srli_epi32(c0, shift), values), w1 = _mm512_permutexvar_ps(_mm512_srli_epi32(c1, shift), values);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        f[r][0] = _mm512_fmadd_ps(w0, _mm512_set1_ps(x[r][b * kG + i]), f[r][0]);
        f[r][1] = _mm512_fmadd_ps(w1, _mm512_set1_ps(x[r][b * kG + 8 + i]), f[r][1]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) acc[r] = _mm512_fmadd_ps(_mm512_add_ps(f[r][0], f[r][1]), scale, acc[r]);
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

constexpr MoeKernel Entry(const char* name, WeightKind weight, DecodeFn decode) {
  return {name, Isa::kAvx512, weight, RowFormat::kF32, decode, Gemm, 3, 2, false};
}
constexpr MoeKernel kKernels[] = {
    {"moe_gemv_nvfp4_f32_avx512", Isa::kAvx512, WeightKind::kNvfp4, RowFormat::kF32, nullptr, GemmFewRows, 2, 5, false},
    Entry("moe_gemm_nvfp4_f32_avx512", WeightKind::kNvfp4, DecodeNvfp4),
    Entry("moe_gemm_fp8_f32_avx512", WeightKind::kFp8, DecodeFp8),
    Entry("moe_gemm_bf16_f32_avx512", WeightKind::kBf16, DecodeBf16),
    Entry("moe_gemm_f32_f32_avx512", WeightKind::kF32, nullptr),
};

}  // namespace

MoeKernelList MoeKernelsAvx512() { return {kKernels, sizeof kKernels / sizeof kKernels[0]}; }

}  // namespace halfbyte::kernels::cpu::moe
