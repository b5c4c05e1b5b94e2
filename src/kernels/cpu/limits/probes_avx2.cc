#include <immintrin.h>

#include "kernels/cpu/limits/probes.h"

namespace halfbyte::kernels::cpu {
namespace {

constexpr int kChains = 12;  // latency 4-5, two a cycle

float F32(int64_t rounds) {
  __m256 acc[kChains], a = _mm256_set1_ps(1.0001f), b = _mm256_set1_ps(1e-8f);
  for (auto& v : acc) v = b;
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
    for (auto& v : acc) v = _mm256_fmadd_ps(v, a, b);
  }
  for (int i = 1; i < kChains; ++i) acc[0] = _mm256_add_ps(acc[0], acc[i]);
  return _mm256_cvtss_f32(acc[0]);
}

// vpmaddubsw, vpmaddwd with ones, vpaddd: the straight form of an INT8 dot product.
float Int8(int64_t rounds) {
  __m256i acc[kChains], a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(-5), ones = _mm256_set1_epi16(1);
  for (auto& v : acc) v = _mm256_setzero_si256();
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
    for (auto& v : acc) {
      asm volatile("" : "+x"(b));  // the products must be made again each time
      v = _mm256_add_epi32(v, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), ones));
    }
  }
  for (int i = 1; i < kChains; ++i) acc[0] = _mm256_add_epi32(acc[0], acc[i]);
  return static_cast<float>(_mm256_extract_epi32(acc[0], 0));
}

}  // namespace

Probe F32ProbeAvx2() { return {F32, int64_t{kChains} * 8 * 2}; }
Probe Int8ProbeAvx2() { return {Int8, int64_t{kChains} * 32 * 2}; }

float ReadProbeAvx2(const void* data, int64_t bytes) {
  // Hardware prefetchers stop at each page and follow few streams: with one stream a core of an Emerald Rapids guest read 13.6 GB/s, with four
  // of them fetched 2 KiB ahead 17.5, and more streams or another distance gave nothing more.
  constexpr int kStreams = 4, kVectors = 4;  // of a stream in a round: two lines
  constexpr int64_t kAhead = 2048;
  const int64_t apart = bytes / kStreams;
  const auto* p = static_cast<const char*>(data);
  __m256i sum[kVectors];
  for (auto& v : sum) v = _mm256_setzero_si256();
  for (int64_t i = 0; i < apart; i += kVectors * 32) {
    for (int s = 0; s < kStreams; ++s) {
      const char* at = p + s * apart + i;
      _mm_prefetch(at + kAhead, _MM_HINT_T0);
      _mm_prefetch(at + kAhead + 64, _MM_HINT_T0);
      for (int j = 0; j < kVectors; ++j) sum[j] = _mm256_xor_si256(sum[j], _mm256_load_si256(reinterpret_cast<const __m256i*>(at) + j));
    }
  }
  for (int j = 1; j < kVectors; ++j) sum[0] = _mm256_xor_si256(sum[0], sum[j]);
  return static_cast<float>(_mm256_extract_epi32(sum[0], 0));
}

}  // namespace halfbyte::kernels::cpu
