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

// exp(x) for x <= 88.3; relative error below 1e-7 (degree 6 on [-ln2/2, ln2/2], tested over the whole range).
[[maybe_unused]] inline __m512 Exp(__m512 x) {
  x = _mm512_max_ps(x, _mm512_set1_ps(-104.0f));
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504088896341f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
  __m512 p = _mm512_set1_ps(1.9875691500e-4f);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.3981999507e-3f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(8.3334519073e-3f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(4.1665795894e-2f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.6666665459e-1f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.0000001201e-1f));
  p = _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), _mm512_add_ps(r, _mm512_set1_ps(1.0f)));
  return _mm512_scalef_ps(p, n);
}

// v / (1 + exp(-v)), the definition; the argument is capped so that exp stays finite (the quotient is below 1e-35 there).
[[maybe_unused]] inline __m512 Silu(__m512 v) {
  const __m512 minus = _mm512_min_ps(_mm512_sub_ps(_mm512_setzero_ps(), v), _mm512_set1_ps(88.3f));
  return _mm512_div_ps(v, _mm512_add_ps(_mm512_set1_ps(1.0f), Exp(minus)));
}

}  // namespace
}  // namespace halfbyte::kernels::cpu::moe
