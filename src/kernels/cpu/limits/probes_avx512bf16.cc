#include <immintrin.h>

#include "kernels/cpu/limits/probes.h"

namespace halfbyte::kernels::cpu {
namespace {

constexpr int kChains = 16;

float Bf16(int64_t rounds) {
  __m512 acc[kChains];
  const auto a = reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3F80)), b = reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3C00));
  for (auto& v : acc) v = _mm512_setzero_ps();
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
    for (auto& v : acc) v = _mm512_dpbf16_ps(v, a, b);
  }
  for (int i = 1; i < kChains; ++i) acc[0] = _mm512_add_ps(acc[0], acc[i]);
  return _mm512_cvtss_f32(acc[0]);
}

}  // namespace

Probe Bf16ProbeAvx512Bf16() { return {Bf16, int64_t{kChains} * 32 * 2}; }

}  // namespace halfbyte::kernels::cpu
