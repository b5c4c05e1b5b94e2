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

}  // namespace
}  // namespace halfbyte::kernels::cpu::moe
