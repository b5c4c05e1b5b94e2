// FP32 arithmetic with AVX-512: every weight format is decoded to an FP32 panel once and used for all rows of the group. This is the exact form
// (x in FP32) on AVX-512 machines, and what formats without a faster kernel run on.
//
// A row's sum is one chain of FMAs over k, for any number of rows. 12 rows x 2 tiles are 24 accumulators, 2 weight vectors and a
// broadcast in 32 registers; at 12 rows the loop is bound by the FMA units, below by their latency.
#include <immintrin.h>

#include "kernels/cpu/moe/kernel.h"
#include "kernels/cpu/moe/vector_math_avx512.h"

namespace halfbyte::kernels::cpu::moe {
namespace {

constexpr int kRows = 12;

void DecodeNvfp4(const DecodeCall& c) {
  const __m512 values = E2m1Table();
  auto* out = reinterpret_cast<float*>(c.panel);
  for (int64_t b = 0; b < c.k / kG; ++b, out += kG * kTile) {
    const std::byte* group = c.tile + b / 4 * Nvfp4GroupBytes();
    const __m512 scale = _mm512_mul_ps(E4m3Scaled(group + 512 + b % 4 * kTile), _mm512_set1_ps(256.0f));
    for (int v = 0; v < 2; ++v) {
      const __m512i codes = _mm512_load_si512(group + b % 4 * 128 + v * 64);
      for (int s = 0; s < 4; ++s) {
        const __m512i even = _mm512_srli_epi32(codes, 4 * s), odd = _mm512_srli_epi32(codes, 16 + 4 * s);
        _mm512_store_ps(out + (8 * v + 2 * s) * kTile, _mm512_mul_ps(_mm512_permutexvar_ps(even, values), scale));
        _mm512_store_ps(out + (8 * v + 2 * s + 1) * kTile, _mm512_mul_ps(_mm512_permutexvar_ps(odd, values), scale));
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
    const __m512i word = _mm512_srli_epi32(_mm512_load_si512(codes + k / 4 * 64), static_cast<unsigned>(8 * (k % 4)));
    const __m512i byte = _mm512_and_si512(word, _mm512_set1_epi32(0xFF));
    const __m512 value = _mm512_i32gather_ps(byte, c.fp8_table, 4);
    _mm512_store_ps(out + k * kTile, _mm512_mul_ps(value, _mm512_loadu_ps(scales + block * kTile)));
  }
}

void DecodeBf16(const DecodeCall& c) {
  auto* out = reinterpret_cast<float*>(c.panel);
  for (int64_t p = 0; p < RoundUp(c.k, kG) / 2; ++p) {
    const __m512i pair = _mm512_load_si512(c.tile + p * 64);
    _mm512_store_si512(out + 2 * p * kTile, _mm512_slli_epi32(pair, 16));
    _mm512_store_si512(out + (2 * p + 1) * kTile, _mm512_and_si512(pair, _mm512_set1_epi32(static_cast<int>(0xFFFF0000))));
  }
}

template <int R>
void Block(const float* w0, const float* w1, int64_t k, const std::byte* const* rows, float* sums) {
  const float* x[R];
  __m512 acc[R][2];
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
    x[r] = reinterpret_cast<const float*>(rows[r]);
    acc[r][0] = acc[r][1] = _mm512_setzero_ps();
  }
  for (int64_t i = 0; i < k; ++i) {
    const __m512 a = _mm512_load_ps(w0 + i * kTile), b = _mm512_load_ps(w1 + i * kTile);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      const __m512 v = _mm512_set1_ps(x[r][i]);
      acc[r][0] = _mm512_fmadd_ps(a, v, acc[r][0]);
      acc[r][1] = _mm512_fmadd_ps(b, v, acc[r][1]);
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
    _mm512_storeu_ps(sums + r * kPair, acc[r][0]);
    _mm512_storeu_ps(sums + r * kPair + kTile, acc[r][1]);
  }
}

using BlockFn = void (*)(const float*, const float*, int64_t, const std::byte* const*, float*);
constexpr BlockFn kBlocks[kRows + 1] = {nullptr,  Block<1>, Block<2>, Block<3>, Block<4>,  Block<5>, Block<6>,
                                        Block<7>, Block<8>, Block<9>, Block<10>, Block<11>, Block<12>};

void Gemm(const GemmCall& c) {
  const auto* w0 = reinterpret_cast<const float*>(c.w[0]);
  const auto* w1 = reinterpret_cast<const float*>(c.w[1]);
  for (int64_t r = 0; r < c.m; r += kRows) {
    const int64_t n = c.m - r < kRows ? c.m - r : kRows;
    kBlocks[n](w0, w1, c.k, c.rows + r, c.sums + r * kPair);
  }
}

constexpr MoeKernel Entry(const char* name, WeightKind weight, DecodeFn decode) {
  return {name, Isa::kAvx512, weight, RowFormat::kF32, decode, decode ? kTile * 4 : 0, Gemm, 3, 2, false};
}
constexpr MoeKernel kKernels[] = {
    Entry("moe_gemm_nvfp4_f32_avx512", WeightKind::kNvfp4, DecodeNvfp4),
    Entry("moe_gemm_fp8_f32_avx512", WeightKind::kFp8, DecodeFp8),
    Entry("moe_gemm_bf16_f32_avx512", WeightKind::kBf16, DecodeBf16),
    Entry("moe_gemm_f32_f32_avx512", WeightKind::kF32, nullptr),
};

}  // namespace

MoeKernelList MoeKernelsAvx512() { return {kKernels, sizeof kKernels / sizeof kKernels[0]}; }

}  // namespace halfbyte::kernels::cpu::moe
