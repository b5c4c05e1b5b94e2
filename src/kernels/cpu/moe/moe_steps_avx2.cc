// SwiGLU, scaling and the weighted sum over slots with AVX2.
#include <immintrin.h>

#include "kernels/cpu/moe/kernel.h"
#include "kernels/cpu/moe/vector_math_avx2.h"

namespace halfbyte::kernels::cpu::moe {
namespace {

void SwiGlu(const SwiGluCall& c) {
  for (int64_t r = 0; r < c.m; ++r) {
    const __m256 row = _mm256_set1_ps(c.row_scale[r]);
    for (int64_t i = 0; i < kTile; i += 8) {
      const float* sums = c.sums + r * kPair + i;
      const __m256 gate = _mm256_mul_ps(_mm256_mul_ps(_mm256_loadu_ps(sums), _mm256_set1_ps(c.gate_scale)), row);
      const __m256 up = _mm256_mul_ps(_mm256_mul_ps(_mm256_loadu_ps(sums + kTile), _mm256_set1_ps(c.up_scale)), row);
      _mm256_storeu_ps(c.h + r * c.ld + i, _mm256_mul_ps(Silu8(gate), up));
    }
  }
}

void Scale(const ScaleCall& c) {
  for (int64_t r = 0; r < c.m; ++r) {
    for (int64_t i = 0; i < c.columns; ++i) c.y[r * c.ld + i] = c.sums[r * kPair + i] * c.scale * c.row_scale[r];
  }
}

void Combine(const CombineCall& c) {
  int64_t i = 0;
  for (; i + 8 <= c.d; i += 8) {
    __m256 sum = _mm256_setzero_ps();
    for (int64_t s = 0; s < c.k; ++s) sum = _mm256_fmadd_ps(_mm256_broadcast_ss(c.weights + s), _mm256_loadu_ps(c.y[s] + i), sum);
    _mm256_storeu_ps(c.out + i, _mm256_add_ps(_mm256_loadu_ps(c.out + i), sum));
  }
  for (; i < c.d; ++i) {
    float sum = 0;
    for (int64_t s = 0; s < c.k; ++s) sum = __builtin_fmaf(c.weights[s], c.y[s][i], sum);
    c.out[i] += sum;
  }
}

}  // namespace

MoeSteps MoeStepsAvx2() { return {PrepareRowAvx2, SwiGlu, Scale, Combine}; }

}  // namespace halfbyte::kernels::cpu::moe
