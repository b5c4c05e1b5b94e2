// Rows into records with AVX2.
#include <immintrin.h>

#include <cstdint>

namespace halfbyte::kernels::cpu::moe {
namespace {

constexpr int kLanes = 8;
typedef float F __attribute__((vector_size(32)));
typedef int32_t I __attribute__((vector_size(32)));
typedef uint32_t U __attribute__((vector_size(32)));
typedef uint16_t H __attribute__((vector_size(16)));

inline float LargestLane(F v) {
  const __m256 all = reinterpret_cast<__m256>(v);
  __m128 m = _mm_max_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1));
  m = _mm_max_ps(m, _mm_movehl_ps(m, m));
  return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

// 16 codes in the order of the records (kernel.h); returns their sum.
inline int32_t StoreCodes(const I* q, int8_t* to) {
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(reinterpret_cast<__m256i>(q[0]), reinterpret_cast<__m256i>(q[1])), 0xD8);
  const __m128i codes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_shuffle_epi8(codes, _mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15)));
  const __m128i sums = _mm_sad_epu8(_mm_xor_si128(codes, _mm_set1_epi8(-128)), _mm_setzero_si128());  // each code plus 128
  return _mm_cvtsi128_si32(sums) + _mm_extract_epi32(sums, 2) - 16 * 128;
}

}  // namespace
}  // namespace halfbyte::kernels::cpu::moe

#include "kernels/cpu/moe/rows_template.h"

namespace halfbyte::kernels::cpu::moe {

float PrepareRowAvx2(const PrepareCall& c) { return Prepare(c); }

}  // namespace halfbyte::kernels::cpu::moe
