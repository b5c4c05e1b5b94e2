// Eight lanes of AVX2 with FMA and F16C: as lanes_avx512.h.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace halfbyte::kernels::quantize {
namespace {

struct Lanes {
  static constexpr int kLanes = 8;
  using F = __m256;
  using I = __m256i;

  static F Set(float v) { return _mm256_set1_ps(v); }
  static I SetI(uint32_t v) { return _mm256_set1_epi32(static_cast<int>(v)); }
  static F Load(const float* p) { return _mm256_load_ps(p); }
  static void Store(float* p, F v) { _mm256_store_ps(p, v); }
  static F Add(F a, F b) { return _mm256_add_ps(a, b); }
  static F Sub(F a, F b) { return _mm256_sub_ps(a, b); }
  static F Mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F Div(F a, F b) { return _mm256_div_ps(a, b); }
  static F Min(F a, F b) { return _mm256_min_ps(a, b); }
  static F Max(F a, F b) { return _mm256_max_ps(a, b); }
  static F MulAdd(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static F MulSub(F a, F b, F c) { return _mm256_fmsub_ps(a, b, c); }
  static F NegMulAdd(F a, F b, F c) { return _mm256_fnmadd_ps(a, b, c); }
  static F And(F a, I mask) { return _mm256_and_ps(a, _mm256_castsi256_ps(mask)); }
  static F SelectLess(F a, F b, F yes, F no) { return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LT_OQ)); }
  static I SelectLess(F a, F b, I yes, I no) { return Bits(SelectLess(a, b, FromBits(yes), FromBits(no))); }
  static bool AnyLessOrEqual(F a, F b) { return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_LE_OQ)) != 0; }
  static I AddI(I a, I b) { return _mm256_add_epi32(a, b); }
  static I SubI(I a, I b) { return _mm256_sub_epi32(a, b); }
  static I AndI(I a, I b) { return _mm256_and_si256(a, b); }
  template <int n> static I Srl(I a) { return _mm256_srli_epi32(a, n); }
  template <int n> static I Sll(I a) { return _mm256_slli_epi32(a, n); }
  static I SelectBits(I mask, I a, I b) { return _mm256_or_si256(_mm256_and_si256(mask, a), _mm256_andnot_si256(mask, b)); }
  static I Bits(F a) { return _mm256_castps_si256(a); }
  static F FromBits(I a) { return _mm256_castsi256_ps(a); }

  static void StoreScales(I bytes, uint8_t* out) {
    const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out), _mm_packus_epi16(words, words));
  }
  static void StoreCodes(I low, I high, uint8_t* out) {
    const I even = _mm256_unpacklo_epi32(low, high), odd = _mm256_unpackhi_epi32(low, high);  // blocks 0 1 4 5, 2 3 6 7
    _mm256_storeu_si256(reinterpret_cast<I*>(out), _mm256_permute2x128_si256(even, odd, 0x20));
    _mm256_storeu_si256(reinterpret_cast<I*>(out + 32), _mm256_permute2x128_si256(even, odd, 0x31));
  }

  static void Transpose8(const char* src, int64_t stride, I d[8]) {
    I r[8], u[8];
    for (int k = 0; k < 8; ++k) r[k] = _mm256_loadu_si256(reinterpret_cast<const I*>(src + k * stride));
    for (int h = 0; h < 2; ++h) {
      const I* a = r + 4 * h;
      const I t0 = _mm256_unpacklo_epi32(a[0], a[1]), t1 = _mm256_unpackhi_epi32(a[0], a[1]);
      const I t2 = _mm256_unpacklo_epi32(a[2], a[3]), t3 = _mm256_unpackhi_epi32(a[2], a[3]);
      u[4 * h] = _mm256_unpacklo_epi64(t0, t2), u[4 * h + 1] = _mm256_unpackhi_epi64(t0, t2);
      u[4 * h + 2] = _mm256_unpacklo_epi64(t1, t3), u[4 * h + 3] = _mm256_unpackhi_epi64(t1, t3);
    }
    for (int j = 0; j < 4; ++j) {
      d[j] = _mm256_permute2x128_si256(u[j], u[4 + j], 0x20);
      d[j + 4] = _mm256_permute2x128_si256(u[j], u[4 + j], 0x31);
    }
  }

  static void HalfToFloat(const void* src, float* out) {
    const __m128i* halves = static_cast<const __m128i*>(src);
    _mm256_store_ps(out, _mm256_cvtph_ps(_mm_loadu_si128(halves)));
    _mm256_store_ps(out + 8, _mm256_cvtph_ps(_mm_loadu_si128(halves + 1)));
  }
};

}  // namespace
}  // namespace halfbyte::kernels::quantize
