// Small AVX-512 helpers of the expert kernels. Internal linkage: every file that includes this is compiled for its own instruction set.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/moe/prefetch.h"

namespace halfbyte::kernels::cpu::moe {
namespace {

[[maybe_unused]] inline __m512 E2m1Table() {
  return _mm512_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f, -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f);
}

// 16 E4M3 bytes (never negative) as FP32, times 2^-8. An E4M3 byte shifted left by 7 is that FP16 number, subnormals included, and the
// conversion takes FP16 subnormals at full speed. (Shifting to FP32 directly gives FP32 subnormals and products that underflow.)
[[maybe_unused]] inline __m512 E4m3Scaled(const std::byte* bytes) {
  const __m256i words = _mm256_cvtepu8_epi16(_mm_load_si128(reinterpret_cast<const __m128i*>(bytes)));
  return _mm512_cvtph_ps(_mm256_slli_epi16(words, 7));
}

}  // namespace
}  // namespace halfbyte::kernels::cpu::moe
