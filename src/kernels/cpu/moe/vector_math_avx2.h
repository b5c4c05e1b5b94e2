// Small AVX2 helpers of the expert kernels; the same arithmetic as vector_math_avx512.h on 8 lanes. Internal linkage.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/moe/prefetch.h"

namespace halfbyte::kernels::cpu::moe {
namespace {

// 8 E4M3 bytes (never negative) as FP32, times 2^-8 (see the AVX-512 form).
[[maybe_unused]] inline __m256 E4m3Scaled8(const std::byte* bytes) {
  const __m128i words = _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes)));
  return _mm256_cvtph_ps(_mm_slli_epi16(words, 7));
}

// The low nibble of each dword as an E2M1 value: vpermps looks at 3 bits (the magnitude), the sign is moved up.
[[maybe_unused]] inline __m256 E2m1Values8(__m256i codes) {
  const __m256 magnitudes = _mm256_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f);
  const __m256i sign = _mm256_and_si256(_mm256_slli_epi32(codes, 28), _mm256_set1_epi32(static_cast<int>(0x80000000)));
  return _mm256_or_ps(_mm256_permutevar8x32_ps(magnitudes, codes), _mm256_castsi256_ps(sign));
}

[[maybe_unused]] inline __m256 Exp8(__m256 x) {
  x = _mm256_max_ps(x, _mm256_set1_ps(-87.0f));
  const __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504088896341f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693359375f), x);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(-2.12194440e-4f), r);
  __m256 p = _mm256_set1_ps(1.9875691500e-4f);
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.3981999507e-3f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(8.3334519073e-3f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(4.1665795894e-2f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.6666665459e-1f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(5.0000001201e-1f));
  p = _mm256_fmadd_ps(p, _mm256_mul_ps(r, r), _mm256_add_ps(r, _mm256_set1_ps(1.0f)));
  // 2^n as 2^(n/2) * 2^(n - n/2): n = 127 + 1 would not fit one exponent field.
  const __m256i i = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(i, 1), bias = _mm256_set1_epi32(127);
  const __m256i a = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
  const __m256i b = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(i, half), bias), 23);
  return _mm256_mul_ps(_mm256_mul_ps(p, _mm256_castsi256_ps(a)), _mm256_castsi256_ps(b));
}

[[maybe_unused]] inline __m256 Silu8(__m256 v) {
  const __m256 minus = _mm256_min_ps(_mm256_sub_ps(_mm256_setzero_ps(), v), _mm256_set1_ps(88.3f));
  return _mm256_div_ps(v, _mm256_add_ps(_mm256_set1_ps(1.0f), Exp8(minus)));
}

}  // namespace
}  // namespace halfbyte::kernels::cpu::moe
