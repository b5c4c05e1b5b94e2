#include <immintrin.h>

#include "kernels/cpu/limits/probes.h"

namespace halfbyte::kernels::cpu {
namespace {

constexpr int kChains = 16;

float F32(int64_t rounds) {
  __m512 acc[kChains], a = _mm512_set1_ps(1.0001f), b = _mm512_set1_ps(1e-8f);
  for (auto& v : acc) v = b;
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
    for (auto& v : acc) v = _mm512_fmadd_ps(v, a, b);
  }
  for (int i = 1; i < kChains; ++i) acc[0] = _mm512_add_ps(acc[0], acc[i]);
  return _mm512_cvtss_f32(acc[0]);
}

}  // namespace

Probe F32ProbeAvx512() { return {F32, int64_t{kChains} * 16 * 2}; }

}  // namespace halfbyte::kernels::cpu
