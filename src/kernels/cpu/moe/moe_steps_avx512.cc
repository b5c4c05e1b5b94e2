// SwiGLU, scaling and the weighted sum over slots with AVX-512.
#include <immintrin.h>

#include "kernels/cpu/moe/kernel.h"
#include "kernels/cpu/moe/vector_math_avx512.h"

namespace halfbyte::kernels::cpu::moe {
namespace {

void SwiGlu(const SwiGluCall& c) {
  for (int64_t r = 0; r < c.m; ++r) {
    const __m512 row = _mm512_set1_ps(c.row_scale[r]);
    const __m512 gate = _mm512_mul_ps(_mm512_mul_ps(_mm512_loadu_ps(c.sums + r * kPair), _mm512_set1_ps(c.gate_scale)), row);
    const __m512 up = _mm512_mul_ps(_mm512_mul_ps(_mm512_loadu_ps(c.sums + r * kPair + kTile), _mm512_set1_ps(c.up_scale)), row);
    _mm512_storeu_ps(c.h + r * c.ld, _mm512_mul_ps(Silu(gate), up));
  }
}

void Scale(const ScaleCall& c) {
  for (int64_t r = 0; r < c.m; ++r) {
    const __m512 row = _mm512_set1_ps(c.row_scale[r]), scale = _mm512_set1_ps(c.scale);
    for (int64_t i = 0; i < c.columns; i += kTile) {
      const auto mask = static_cast<__mmask16>(c.columns - i >= kTile ? 0xFFFF : (1 << (c.columns - i)) - 1);
      const __m512 v = _mm512_mul_ps(_mm512_mul_ps(_mm512_loadu_ps(c.sums + r * kPair + i), scale), row);
      _mm512_mask_storeu_ps(c.y + r * c.ld + i, mask, v);
    }
  }
}

void Combine(const CombineCall& c) {
  for (int64_t i = 0; i < c.d; i += 16) {
    const auto mask = static_cast<__mmask16>(c.d - i >= 16 ? 0xFFFF : (1 << (c.d - i)) - 1);
    __m512 sum = _mm512_setzero_ps();
    for (int64_t s = 0; s < c.k; ++s) sum = _mm512_fmadd_ps(_mm512_set1_ps(c.weights[s]), _mm512_maskz_loadu_ps(mask, c.y[s] + i), sum);
    _mm512_mask_storeu_ps(c.out + i, mask, _mm512_add_ps(_mm512_maskz_loadu_ps(mask, c.out + i), sum));
  }
}

}  // namespace

MoeSteps MoeStepsAvx512() { return {PrepareRowAvx512, SwiGlu, Scale, Combine}; }

}  // namespace halfbyte::kernels::cpu::moe
