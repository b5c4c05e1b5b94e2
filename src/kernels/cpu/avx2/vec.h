// V16: 16 floats in two registers, the vocabulary of the templates in common/. For files compiled with AVX2, FMA and F16C.
// Everything has internal linkage: the same names exist in avx512/vec.h for another machine.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace halfbyte::kernels::cpu {
namespace {

struct V16 {
  __m256 a, b;
};

// Lanes [0, n) all ones, n clamped to [0, 8].
inline __m256i Mask8(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n < 0   ? 0
                                                               : n > 8 ? 8
                                                                       : n)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

inline V16 Zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
inline V16 Set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline V16 Load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline V16 LoadN(const float* p, int64_t n) {
  return {_mm256_maskload_ps(p, Mask8(n)), n > 8 ? _mm256_maskload_ps(p + 8, Mask8(n - 8)) : _mm256_setzero_ps()};
}
inline void Store(float* p, V16 x) {
  _mm256_storeu_ps(p, x.a);
  _mm256_storeu_ps(p + 8, x.b);
}
inline void StoreN(float* p, V16 x, int64_t n) {
  _mm256_maskstore_ps(p, Mask8(n), x.a);
  if (n > 8) _mm256_maskstore_ps(p + 8, Mask8(n - 8), x.b);
}
inline V16 Add(V16 x, V16 y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
inline V16 Sub(V16 x, V16 y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
inline V16 Mul(V16 x, V16 y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
inline V16 Div(V16 x, V16 y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
inline V16 Fma(V16 x, V16 y, V16 z) { return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }     // x * y + z
inline V16 Fnma(V16 x, V16 y, V16 z) { return {_mm256_fnmadd_ps(x.a, y.a, z.a), _mm256_fnmadd_ps(x.b, y.b, z.b)}; }  // z - x * y
// The second operand where one is NaN.
inline V16 Max(V16 x, V16 y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
inline V16 Min(V16 x, V16 y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
inline V16 Round(V16 x) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(x.a, kNearest), _mm256_round_ps(x.b, kNearest)};
}
inline __m256 ScaleHalf(__m256 x, __m256 n) {
  return _mm256_mul_ps(
      x, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23)));
}
// x * 2^n, n integral in [-126, 127].
inline V16 ScaleByPowerOf2(V16 x, V16 n) { return {ScaleHalf(x.a, n.a), ScaleHalf(x.b, n.b)}; }
// v where x < limit is false, else 0.
inline V16 ZeroWhereLess(V16 v, V16 x, V16 limit) {
  return {_mm256_andnot_ps(_mm256_cmp_ps(x.a, limit.a, _CMP_LT_OQ), v.a),
          _mm256_andnot_ps(_mm256_cmp_ps(x.b, limit.b, _CMP_LT_OQ), v.b)};
}
// Lane i: begin <= i < end ? x : y.
inline V16 SelectRange(V16 x, V16 y, int64_t begin, int64_t end) {
  __m256i lo = _mm256_andnot_si256(Mask8(begin), Mask8(end)), hi = _mm256_andnot_si256(Mask8(begin - 8), Mask8(end - 8));
  return {_mm256_blendv_ps(y.a, x.a, _mm256_castsi256_ps(lo)), _mm256_blendv_ps(y.b, x.b, _mm256_castsi256_ps(hi))};
}
inline float SumLanes(V16 x) {
  __m256 s = _mm256_add_ps(x.a, x.b);
  __m128 q = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
  q = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}
inline float MaxLanes(V16 x) {
  __m256 s = _mm256_max_ps(x.a, x.b);
  __m128 q = _mm_max_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
  q = _mm_max_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}

inline __m256 WidenBf16Half(__m128i h) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16)); }
inline V16 LoadBf16(const uint16_t* p) {
  return {WidenBf16Half(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          WidenBf16Half(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
inline V16 LoadBf16N(const uint16_t* p, int64_t n) {
  alignas(32) uint16_t t[16] = {};
  for (int64_t i = 0; i < n; ++i) t[i] = p[i];
  return LoadBf16(t);
}
inline __m256i RoundedBits(__m256 x) {
  __m256i u = _mm256_castps_si256(x);
  __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
  __m256i r = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
  __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
  return _mm256_castps_si256(
      _mm256_blendv_ps(_mm256_castsi256_ps(r), _mm256_castsi256_ps(_mm256_or_si256(u, _mm256_set1_epi32(0x400000))), nan));
}
inline void StoreBf16(uint16_t* p, V16 x) {
  __m256i packed = _mm256_packus_epi32(_mm256_srli_epi32(RoundedBits(x.a), 16), _mm256_srli_epi32(RoundedBits(x.b), 16));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xD8));
}
inline void StoreBf16N(uint16_t* p, V16 x, int64_t n) {
  alignas(32) uint16_t t[16];
  StoreBf16(t, x);
  for (int64_t i = 0; i < n && i < 16; ++i) p[i] = t[i];
}
inline V16 RoundToBf16(V16 x) {
  __m256i high = _mm256_set1_epi32(static_cast<int>(0xFFFF0000));
  return {_mm256_castsi256_ps(_mm256_and_si256(RoundedBits(x.a), high)),
          _mm256_castsi256_ps(_mm256_and_si256(RoundedBits(x.b), high))};
}

// 16 non-negative E4M3 bytes as floats, times 2^-8: shifted by 7 they are IEEE halves of that value, subnormals included.
inline V16 WidenE4m3Bits(const std::byte* p) {
  __m256i h = _mm256_slli_epi16(_mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))), 7);
  return {_mm256_cvtph_ps(_mm256_castsi256_si128(h)), _mm256_cvtph_ps(_mm256_extracti128_si256(h, 1))};
}
// n FP8 codes (E4M3) as BF16, exactly; n a multiple of 2. As IEEE halves the moved bits are the value times 2^-8, subnormals
// included.
inline __m256i Fp8ToFloatBits(__m128i halves) {
  return _mm256_castps_si256(_mm256_mul_ps(_mm256_cvtph_ps(halves), _mm256_set1_ps(256.0f)));
}
inline __m256i ExpandFp8(__m128i codes) {
  const __m256i code = _mm256_cvtepu8_epi16(codes);
  const __m256i half = _mm256_or_si256(_mm256_slli_epi16(_mm256_and_si256(code, _mm256_set1_epi16(0x80)), 8),
                                       _mm256_slli_epi16(_mm256_and_si256(code, _mm256_set1_epi16(0x7F)), 7));
  const __m256i low = _mm256_srli_epi32(Fp8ToFloatBits(_mm256_castsi256_si128(half)), 16),
                high = _mm256_srli_epi32(Fp8ToFloatBits(_mm256_extracti128_si256(half, 1)), 16);
  return _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xD8);
}
inline void ExpandFp8(const std::byte* in, int64_t n, uint16_t* out) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i),
                        ExpandFp8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
  if (i == n) return;
  alignas(32) std::byte codes[16] = {};
  alignas(32) uint16_t values[16];
  for (int64_t j = i; j < n; ++j) codes[j - i] = in[j];
  _mm256_store_si256(reinterpret_cast<__m256i*>(values), ExpandFp8(_mm_load_si128(reinterpret_cast<const __m128i*>(codes))));
  for (int64_t j = i; j < n; ++j) out[j] = values[j - i];
}

}  // namespace
}  // namespace halfbyte::kernels::cpu
