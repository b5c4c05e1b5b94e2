#include <immintrin.h>

#include "kernels/cpu/limits/probes.h"

namespace halfbyte::kernels::cpu {
namespace {

constexpr int kChains = 16;

float Int8(int64_t rounds) {
  __m512i acc[kChains], a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(-5);
  for (auto& v : acc) v = _mm512_setzero_si512();
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
    for (auto& v : acc) v = _mm512_dpbusd_epi32(v, a, b);
  }
  for (int i = 1; i < kChains; ++i) acc[0] = _mm512_add_epi32(acc[0], acc[i]);
  return static_cast<float>(_mm_cvtsi128_si32(_mm512_castsi512_si128(acc[0])));
}

}  // namespace

Probe Int8ProbeAvx512Vnni() { return {Int8, int64_t{kChains} * 64 * 2}; }

}  // namespace halfbyte::kernels::cpu
