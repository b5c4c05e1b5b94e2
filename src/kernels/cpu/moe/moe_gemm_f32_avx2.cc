// FP32 arithmetic with AVX2 and FMA: decode a tile to an FP32 panel once, use it for all rows of the group. The exact form, and the form for BF16
// rows, on machines without AVX-512.
//
// A row's sum is one chain of FMAs over k, for any number of rows. One tile (two vectors of 8 lanes) by 6 rows are 12 accumulators of
// the 16 registers.
#include <immintrin.h>

#include "kernels/cpu/moe/kernel.h"
#include "kernels/cpu/moe/vector_math_avx2.h"

namespace halfbyte::kernels::cpu::moe {
namespace {

constexpr int kRows = 6;

void DecodeNvfp4(const DecodeCall& c) {
  auto* out = reinterpret_cast<float*>(c.panel);
  for (int64_t b = 0; b < c.k / kG; ++b, out += kG * kTile) {
    const std::byte* group = c.tile + b / 4 * Nvfp4GroupBytes();
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

void DecodeFp8(const DecodeCall& c) {
  const int64_t kp = RoundUp(c.k, kG), blocks = (c.k + c.block_cols - 1) / c.block_cols;
  const auto* scales = reinterpret_cast<const float*>(c.tile);
  const std::byte* codes = c.tile + blocks * kTile * 4;
  auto* out = reinterpret_cast<float*>(c.panel);
  for (int64_t k = 0; k < kp; ++k) {
    const int64_t block = k / c.block_cols < blocks ? k / c.block_cols : blocks - 1;  // padding bytes are zero
    for (int half = 0; half < 2; ++half) {
      const __m256i dword = _mm256_load_si256(reinterpret_cast<const __m256i*>(codes + k / 4 * 64 + half * 32));
      const __m256i byte = _mm256_and_si256(_mm256_srli_epi32(dword, static_cast<int>(8 * (k % 4))), _mm256_set1_epi32(0xFF));
      const __m256 value = _mm256_i32gather_ps(c.fp8_table, byte, 4);
      _mm256_store_ps(out + k * kTile + half * 8, _mm256_mul_ps(value, _mm256_loadu_ps(scales + block * kTile + half * 8)));
    }
  }
}

void DecodeBf16(const DecodeCall& c) {
  auto* out = reinterpret_cast<float*>(c.panel);
  for (int64_t p = 0; p < RoundUp(c.k, kG) / 2; ++p) {
    for (int half = 0; half < 2; ++half) {
      const __m256i pair = _mm256_load_si256(reinterpret_cast<const __m256i*>(c.tile + p * 64 + half * 32));
      const __m256i odd = _mm256_and_si256(pair, _mm256_set1_epi32(static_cast<int>(0xFFFF0000)));
      _mm256_store_ps(out + 2 * p * kTile + half * 8, _mm256_castsi256_ps(_mm256_slli_epi32(pair, 16)));
      _mm256_store_ps(out + (2 * p + 1) * kTile + half * 8, _mm256_castsi256_ps(odd));
    }
  }
}

template <int R>
void Block(const float* w, int64_t k, const std::byte* const* rows, float* sums) {
  const float* x[R];
  __m256 acc[R][2];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
    x[r] = reinterpret_cast<const float*>(rows[r]);
    acc[r][0] = acc[r][1] = _mm256_setzero_ps();
  }
  for (int64_t i = 0; i < k; ++i) {
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

using BlockFn = void (*)(const float*, int64_t, const std::byte* const*, float*);
constexpr BlockFn kBlocks[kRows + 1] = {nullptr, Block<1>, Block<2>, Block<3>, Block<4>, Block<5>, Block<6>};

void Gemm(const GemmCall& c) {
  for (int64_t r = 0; r < c.m; r += kRows) {
    const int64_t n = c.m - r < kRows ? c.m - r : kRows;
    for (int t = 0; t < 2; ++t) {
      kBlocks[n](reinterpret_cast<const float*>(c.w[t]), c.k, c.rows + r, c.sums + r * kPair + t * kTile);
    }
  }
}

constexpr MoeKernel Entry(const char* name, WeightKind weight, DecodeFn decode) {
  return {name, Isa::kAvx2, weight, RowFormat::kF32, decode, decode ? kTile * 4 : 0, Gemm, 1, 1, false};
}
constexpr MoeKernel kKernels[] = {
    Entry("moe_gemm_nvfp4_f32_avx2", WeightKind::kNvfp4, DecodeNvfp4),
    Entry("moe_gemm_fp8_f32_avx2", WeightKind::kFp8, DecodeFp8),
    Entry("moe_gemm_bf16_f32_avx2", WeightKind::kBf16, DecodeBf16),
    Entry("moe_gemm_f32_f32_avx2", WeightKind::kF32, nullptr),
};

}  // namespace

MoeKernelList MoeKernelsAvx2() { return {kKernels, sizeof kKernels / sizeof kKernels[0]}; }

}  // namespace halfbyte::kernels::cpu::moe
