// V16: 16 floats in one register, the vocabulary of the templates in common/. For files compiled with AVX-512 F, BW, VL and DQ.
// Everything has internal linkage: the same names exist in avx2/vec.h for another machine.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace halfbyte::kernels::cpu {
namespace {

struct V16 {
  __m512 v;
};

inline __mmask16 TailMask(int64_t n) { return static_cast<__mmask16>(n >= 16 ? 0xFFFF : (1u << n) - 1); }

inline V16 Zero() { return {_mm512_setzero_ps()}; }
inline V16 Set1(float x) { return {_mm512_set1_ps(x)}; }
inline V16 Load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline V16 LoadN(const float* p, int64_t n) { return {_mm512_maskz_loadu_ps(TailMask(n), p)}; }
inline void Store(float* p, V16 a) { _mm512_storeu_ps(p, a.v); }
inline void StoreN(float* p, V16 a, int64_t n) { _mm512_mask_storeu_ps(p, TailMask(n), a.v); }
inline V16 Add(V16 a, V16 b) { return {_mm512_add_ps(a.v, b.v)}; }
inline V16 Sub(V16 a, V16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline V16 Mul(V16 a, V16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline V16 Div(V16 a, V16 b) { return {_mm512_div_ps(a.v, b.v)}; }
inline V16 Fma(V16 a, V16 b, V16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }    // a * b + c
inline V16 Fnma(V16 a, V16 b, V16 c) { return {_mm512_fnmadd_ps(a.v, b.v, c.v)}; }  // c - a * b
// The second operand where one is NaN.
inline V16 Max(V16 a, V16 b) { return {_mm512_max_ps(a.v, b.v)}; }
inline V16 Min(V16 a, V16 b) { return {_mm512_min_ps(a.v, b.v)}; }
inline V16 Round(V16 a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
// a * 2^n, n integral in [-126, 127].
inline V16 ScaleByPowerOf2(V16 a, V16 n) { return {_mm512_scalef_ps(a.v, n.v)}; }
// a where x < limit is false, else 0.
inline V16 ZeroWhereLess(V16 a, V16 x, V16 limit) {
  return {_mm512_mask_mov_ps(a.v, _mm512_cmp_ps_mask(x.v, limit.v, _CMP_LT_OQ), _mm512_setzero_ps())};
}
// Lane i: begin <= i < end ? a : b.
inline V16 SelectRange(V16 a, V16 b, int64_t begin, int64_t end) {
  __mmask16 m = static_cast<__mmask16>(TailMask(end < 0 ? 0 : end) & ~TailMask(begin < 0 ? 0 : begin));
  return {_mm512_mask_mov_ps(b.v, m, a.v)};
}
inline float SumLanes(V16 a) { return _mm512_reduce_add_ps(a.v); }
inline float MaxLanes(V16 a) { return _mm512_reduce_max_ps(a.v); }

inline V16 WidenBf16(__m256i h) { return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16))}; }
inline V16 LoadBf16(const uint16_t* p) { return WidenBf16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
inline V16 LoadBf16N(const uint16_t* p, int64_t n) { return WidenBf16(_mm256_maskz_loadu_epi16(TailMask(n), p)); }
// Round to nearest even in integer arithmetic: unlike vcvtneps2bf16 it keeps subnormals.
inline __m512i RoundedBits(V16 a) {
  __m512i u = _mm512_castps_si512(a.v);
  __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  __m512i r = _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
  __mmask16 nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
  return _mm512_mask_or_epi32(r, nan, u, _mm512_set1_epi32(0x400000));
}
inline __m256i NarrowBf16(V16 a) { return _mm512_cvtepi32_epi16(_mm512_srli_epi32(RoundedBits(a), 16)); }
inline void StoreBf16(uint16_t* p, V16 a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), NarrowBf16(a)); }
inline void StoreBf16N(uint16_t* p, V16 a, int64_t n) { _mm256_mask_storeu_epi16(p, TailMask(n), NarrowBf16(a)); }
inline V16 RoundToBf16(V16 a) {
  return {_mm512_castsi512_ps(_mm512_and_si512(RoundedBits(a), _mm512_set1_epi32(static_cast<int>(0xFFFF0000))))};
}

// 16 non-negative E4M3 bytes as floats, times 2^-8: shifted by 7 they are IEEE halves of that value, subnormals included.
inline V16 WidenE4m3Bits(const std::byte* p) {
  return {_mm512_cvtph_ps(_mm256_slli_epi16(_mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))), 7))};
}
// n FP8 codes (E4M3) as BF16, exactly; n a multiple of 2. Exponent and mantissa move in place, and 120 is added to the exponent;
// exponent 0 is looked up.
inline void ExpandFp8(const std::byte* in, int64_t n, uint16_t* out) {
  alignas(64) static constexpr uint16_t kSmall[32] = {0, 0x3B00, 0x3B80, 0x3BC0, 0x3C00, 0x3C20, 0x3C40, 0x3C60};
  for (int64_t i = 0; i < n; i += 32) {
    const __mmask32 valid = n - i >= 32 ? 0xFFFFFFFF : (1u << (n - i)) - 1;
    const __m512i code = _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(valid, in + i));
    const __m512i sign = _mm512_slli_epi16(_mm512_and_si512(code, _mm512_set1_epi16(0x80)), 8),
                  magnitude = _mm512_and_si512(code, _mm512_set1_epi16(0x7F));
    const __m512i normal = _mm512_add_epi16(_mm512_slli_epi16(magnitude, 4), _mm512_set1_epi16(0x3C00));
    const __mmask32 small = _mm512_testn_epi16_mask(code, _mm512_set1_epi16(0x78));
    const __m512i value = _mm512_mask_permutexvar_epi16(normal, small, magnitude, _mm512_load_si512(kSmall));
    _mm512_mask_storeu_epi16(out + i, valid, _mm512_or_si512(value, sign));
  }
}

}  // namespace
}  // namespace halfbyte::kernels::cpu
