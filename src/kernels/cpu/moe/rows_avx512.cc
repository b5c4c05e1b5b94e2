// Rows into records with AVX-512.
#include <immintrin.h>

#include <cstdint>

namespace halfbyte::kernels::cpu::moe {
namespace {

constexpr int kLanes = 16;
typedef float F __attribute__((vector_size(64)));
typedef int32_t I __attribute__((vector_size(64)));
typedef uint32_t U __attribute__((vector_size(64)));
typedef uint16_t H __attribute__((vector_size(32)));

inline float LargestLane(F v) { return _mm512_reduce_max_ps(reinterpret_cast<__m512>(v)); }

// 16 codes in the order of the records (kernel.h); returns their sum.
inline int32_t StoreCodes(const I* q, int8_t* to) {
  const __m128i codes = _mm512_cvtepi32_epi8(reinterpret_cast<__m512i>(q[0]));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_shuffle_epi8(codes, _mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15)));
  const __m128i sums = _mm_sad_epu8(_mm_xor_si128(codes, _mm_set1_epi8(-128)), _mm_setzero_si128());  // each code plus 128
  return _mm_cvtsi128_si32(sums) + _mm_extract_epi32(sums, 2) - 16 * 128;
}

}  // namespace
}  // namespace halfbyte::kernels::cpu::moe

#include "kernels/cpu/moe/rows_template.h"

namespace halfbyte::kernels::cpu::moe {

float PrepareRowAvx512(const PrepareCall& c) { return Prepare(c); }

}  // namespace halfbyte::kernels::cpu::moe
