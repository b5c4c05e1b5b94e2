// FP32 arithmetic with AVX2 and FMA: the exact form, and the form for BF16 rows, on machines without AVX-512. The scheme of the AVX-512 file.
//
// Prompt rows: 128 inner values of both tiles are decoded into 16 KiB of L1 and all rows meet them. A row's sum is one chain of FMAs over k. One
// tile (two vectors of 8 lanes) by 6 rows are 12 accumulators of the 16 registers.
//
// Generated rows of NVFP4: a code vector becomes signed bytes 2 x E2M1 by vpshufb (32 weights at once), bytes become FP32 by two shifts and vcvtdq2ps: 5
// operations for 8 weights with the FMA, all but the shuffle on any port, where vpermps with its sign fix takes 6. The doubling goes at the end.
#include <immintrin.h>

#include "kernels/cpu/moe/kernel.h"
#include "kernels/cpu/moe/vector_math_avx2.h"

namespace halfbyte::kernels::cpu::moe {
namespace {

void DecodeNvfp4(const DecodeCall& c) {
  auto* out = reinterpret_cast<float*>(c.panel);
  for (int64_t b = c.k_begin / kG; b < c.k_end / kG; ++b, out += kG * kTile) {
    const std::byte* group = c.tile + b / 4 * Nvfp4GroupBytes();
    if (b % 4 == 0) PrefetchGroup(group);
    for (int half = 0; half < 2; ++half) {  // lanes 0..7, 8..15
      const __m256 scale = _mm256_mul_ps(E4m3Scaled8(group + 512 + b % 4 * kTile + half * 8), _mm256_set1_ps(256.0f));
      for (int v = 0; v < 2; ++v) {
        const __m256i codes = _mm256_load_si256(reinterpret_cast<const __m256i*>(group + b % 4 * 128 + v * 64 + half * 32));
        for (int s = 0; s < 4; ++s) {
          const __m256 even = E2m1Values8(_mm256_srli_epi32(codes, 4 * s)), odd = E2m1Values8(_mm256_srli_epi32(codes, 16 + 4 * s));
          _mm256_store_ps(out + (8 * v + 2 * s) * kTile + half * 8, _mm256_mul_ps(even, scale));
          _mm256_store_ps(out + (8 * v + 2 * s + 1) * kTile + half * 8, _mm256_mul_ps(odd, scale));
        }
      }
    }
  }
}

// See the AVX-512 file.
void DecodeFp8(const DecodeCall& c) {
  const int64_t blocks = (c.k + c.block_cols - 1) / c.block_cols;
  const auto* scales = reinterpret_cast<const float*>(c.tile);
  const std::byte* codes = c.tile + blocks * kTile * 4;
  const __m256 undo = _mm256_set1_ps(c.e5m2 ? 1.0f : 256.0f);
  auto* out = reinterpret_cast<float*>(c.panel);
  for (int64_t k = c.k_begin; k < c.k_end;) {
    const int64_t block = k / c.block_cols, block_end = (block + 1) * c.block_cols < c.k_end ? (block + 1) * c.block_cols : c.k_end;
    const __m256 left = _mm256_mul_ps(_mm256_loadu_ps(scales + block * kTile), undo), right = _mm256_mul_ps(_mm256_loadu_ps(scales + block * kTile + 8), undo);
    for (; k < block_end; ++k, out += kTile) {
      if (k % 4 == 0) PrefetchAhead(codes + k * kTile);
      const __m256i words = _mm256_cvtepi8_epi16(_mm_load_si128(reinterpret_cast<const __m128i*>(codes + k * kTile)));
      const __m256i half = c.e5m2 ? _mm256_slli_epi16(words, 8) : _mm256_and_si256(_mm256_slli_epi16(words, 7), _mm256_set1_epi16(static_cast<short>(0xBFFF)));
      _mm256_store_ps(out, _mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(half)), left));
      _mm256_store_ps(out + 8, _mm256_mul_ps(_mm256_cvtph_ps(_mm256_extracti128_si256(half, 1)), right));
    }
  }
}

void DecodeBf16(const DecodeCall& c) {
  auto* out = reinterpret_cast<float*>(c.panel);
  for (int64_t p = c.k_begin / 2; p < (c.k_end + 1) / 2; ++p, out += 2 * kTile) {
    PrefetchAhead(c.tile + p * 64);
    for (int half = 0; half < 2; ++half) {
      const __m256i pair = _mm256_load_si256(reinterpret_cast<const __m256i*>(c.tile + p * 64 + half * 32));
      const __m256i odd = _mm256_and_si256(pair, _mm256_set1_epi32(static_cast<int>(0xFFFF0000)));
      _mm256_store_ps(out + half * 8, _mm256_castsi256_ps(_mm256_slli_epi32(pair, 16)));
      _mm256_store_ps(out + kTile + half * 8, _mm256_castsi256_ps(odd));
    }
  }
}

// --- prompt rows ------------------------------------------------------------------------------------------------------------

constexpr int kRows = 6;
constexpr int64_t kPiece = 128;

template <int R>
void Block(const float* w, int64_t k_begin, int64_t n, const std::byte* const* rows, float* sums) {
  const float* x[R];
  __m256 acc[R][2];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
    x[r] = reinterpret_cast<const float*>(rows[r]) + k_begin;
    acc[r][0] = k_begin == 0 ? _mm256_setzero_ps() : _mm256_loadu_ps(sums + r * kPair);
    acc[r][1] = k_begin == 0 ? _mm256_setzero_ps() : _mm256_loadu_ps(sums + r * kPair + 8);
  }
  for (int64_t i = 0; i < n; ++i) {
    const __m256 a = _mm256_load_ps(w + i * kTile), b = _mm256_load_ps(w + i * kTile + 8);
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      const __m256 v = _mm256_broadcast_ss(x[r] + i);
      acc[r][0] = _mm256_fmadd_ps(a, v, acc[r][0]);
      acc[r][1] = _mm256_fmadd_ps(b, v, acc[r][1]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
    _mm256_storeu_ps(sums + r * kPair, acc[r][0]);
    _mm256_storeu_ps(sums + r * kPair + 8, acc[r][1]);
  }
}

using BlockFn = void (*)(const float*, int64_t, int64_t, const std::byte* const*, float*);
constexpr BlockFn kBlocks[kRows + 1] = {nullptr, Block<1>, Block<2>, Block<3>, Block<4>, Block<5>, Block<6>};

void Gemm(const GemmCall& c) {
  alignas(64) float panel[kPiece * kTile];
  for (int t = 0; t < 2; ++t) {
    const TileRef& tile = c.w[t];
    for (int64_t k = 0; k < c.k; k += kPiece) {
      const int64_t end = k + kPiece < c.k ? k + kPiece : c.k;
      if (tile.decode) tile.decode({tile.data, c.k, k, end, tile.block_cols, tile.e5m2, reinterpret_cast<std::byte*>(panel)});
      const float* w = tile.decode ? panel : reinterpret_cast<const float*>(tile.data) + k * kTile;
      for (int64_t r = 0; r < c.m; r += kRows) {
        const int64_t n = c.m - r < kRows ? c.m - r : kRows;
        kBlocks[n](w, k, end - k, c.rows + r, c.sums + r * kPair + t * kTile);
      }
    }
  }
}

// --- generated rows of NVFP4 ------------------------------------------------------------------------------------------------

constexpr int kFewRows = 4;

// Inner values that the four dwords' bytes of a code vector stand for: low nibbles 0 4 1 5, high nibbles 2 6 3 7 (kernel.h).
constexpr int kByteValue[2][4] = {{0, 4, 1, 5}, {2, 6, 3, 7}};

template <int R>
void FewRowsBlock(const std::byte* tile, int64_t k, const std::byte* const* rows, float* sums) {
  const __m256i table = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12));
  const __m256i nibble = _mm256_set1_epi8(15);
  for (int half = 0; half < 2; ++half) {  // lanes 0..7, 8..15
    __m256 acc[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) acc[r] = _mm256_setzero_ps();
    for (int64_t b = 0; b < k / kG; ++b) {
      const std::byte* group = tile + b / 4 * Nvfp4GroupBytes();
      if (b % 4 == 0) PrefetchGroup(group);
      __m256 f[R];
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) f[r] = _mm256_setzero_ps();
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        const __m256i codes = _mm256_load_si256(reinterpret_cast<const __m256i*>(group + b % 4 * 128 + v * 64 + half * 32));
#pragma GCC unroll 2
        for (int high = 0; high < 2; ++high) {
          // Lane l of dword byte j is value kByteValue[high][j] of column l; shifting each dword left brings byte j to the top, and an
          // arithmetic shift right makes it a signed number.
          const __m256i bytes = _mm256_shuffle_epi8(table, _mm256_and_si256(high ? _mm256_srli_epi32(codes, 4) : codes, nibble));
#pragma GCC unroll 4
          for (int j = 0; j < 4; ++j) {
            const __m256 w = _mm256_cvtepi32_ps(_mm256_srai_epi32(j == 3 ? bytes : _mm256_slli_epi32(bytes, 24 - 8 * j), 24));
            const int64_t at = b * kG + v * 8 + kByteValue[high][j];
#pragma GCC unroll 4
            for (int r = 0; r < R; ++r) f[r] = _mm256_fmadd_ps(w, _mm256_broadcast_ss(reinterpret_cast<const float*>(rows[r]) + at), f[r]);
          }
        }
      }
      const __m256 scale = E4m3Scaled8(group + 512 + b % 4 * kTile + half * 8);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) acc[r] = _mm256_fmadd_ps(f[r], scale, acc[r]);
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) _mm256_storeu_ps(sums + r * kPair + half * 8, _mm256_mul_ps(acc[r], _mm256_set1_ps(128.0f)));
  }
}

using FewRowsFn = void (*)(const std::byte*, int64_t, const std::byte* const*, float*);
constexpr FewRowsFn kFewRowsBlocks[kFewRows + 1] = {nullptr, FewRowsBlock<1>, FewRowsBlock<2>, FewRowsBlock<3>, FewRowsBlock<4>};

void GemmFewRows(const GemmCall& c) {
  for (int64_t r = 0; r < c.m; r += kFewRows) {
    const int64_t n = c.m - r < kFewRows ? c.m - r : kFewRows;
    for (int t = 0; t < 2; ++t) kFewRowsBlocks[n](c.w[t].data, c.k, c.rows + r, c.sums + r * kPair + t * kTile);
  }
}

constexpr MoeKernel Entry(const char* name, WeightKind weight, DecodeFn decode) {
  return {name, Isa::kAvx2, weight, RowFormat::kF32, decode, Gemm, 1, 1, false};
}
constexpr MoeKernel kKernels[] = {
    {"moe_gemv_nvfp4_f32_avx2", Isa::kAvx2, WeightKind::kNvfp4, RowFormat::kF32, nullptr, GemmFewRows, 0, 3, false},
    Entry("moe_gemm_nvfp4_f32_avx2", WeightKind::kNvfp4, DecodeNvfp4),
    Entry("moe_gemm_fp8_f32_avx2", WeightKind::kFp8, DecodeFp8),
    Entry("moe_gemm_bf16_f32_avx2", WeightKind::kBf16, DecodeBf16),
    Entry("moe_gemm_f32_f32_avx2", WeightKind::kF32, nullptr),
};

}  // namespace

MoeKernelList MoeKernelsAvx2() { return {kKernels, sizeof kKernels / sizeof kKernels[0]}; }

}  // namespace halfbyte::kernels::cpu::moe
