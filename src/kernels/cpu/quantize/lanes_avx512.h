// Sixteen lanes of AVX-512 (F, BW, VL, DQ): the operations that the quantizers are written in. Included by one .cc an ISA only; the
// anonymous namespace keeps code compiled for this ISA from being linked into others.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace halfbyte::kernels::quantize {
namespace {

struct Lanes {
  static constexpr int kLanes = 16;  // blocks worked on at once
  using F = __m512;
  using I = __m512i;

  static F Set(float v) { return _mm512_set1_ps(v); }
  static I SetI(uint32_t v) { return _mm512_set1_epi32(static_cast<int>(v)); }
  static F Load(const float* p) { return _mm512_load_ps(p); }
  static void Store(float* p, F v) { _mm512_store_ps(p, v); }
  static F Add(F a, F b) { return _mm512_add_ps(a, b); }
  static F Sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static F Mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F Div(F a, F b) { return _mm512_div_ps(a, b); }
  static F Min(F a, F b) { return _mm512_min_ps(a, b); }  // b where either is NaN
  static F Max(F a, F b) { return _mm512_max_ps(a, b); }
  // Used only where the product is exact, so that the result is that of two separate operations.
  static F MulAdd(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F MulSub(F a, F b, F c) { return _mm512_fmsub_ps(a, b, c); }
  static F NegMulAdd(F a, F b, F c) { return _mm512_fnmadd_ps(a, b, c); }
  static F And(F a, I mask) { return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(a), mask)); }
  static F SelectLess(F a, F b, F yes, F no) { return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes); }
  static I SelectLess(F a, F b, I yes, I no) { return _mm512_mask_blend_epi32(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes); }
  static bool AnyLessOrEqual(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ) != 0; }
  static I AddI(I a, I b) { return _mm512_add_epi32(a, b); }
  static I SubI(I a, I b) { return _mm512_sub_epi32(a, b); }
  static I AndI(I a, I b) { return _mm512_and_si512(a, b); }
  template <int n> static I Srl(I a) { return _mm512_srli_epi32(a, n); }
  template <int n> static I Sll(I a) { return _mm512_slli_epi32(a, n); }
  // (a & mask) | (b & ~mask), one vpternlogd.
  static I SelectBits(I mask, I a, I b) { return _mm512_ternarylogic_epi32(mask, a, b, 0xCA); }
  static I Bits(F a) { return _mm512_castps_si512(a); }
  static F FromBits(I a) { return _mm512_castsi512_ps(a); }

  // Scale bytes of 16 blocks.
  static void StoreScales(I bytes, uint8_t* out) { _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm512_cvtepi32_epi8(bytes)); }
  // low = codes of elements 0..7, high = 8..15 of each block; 8 bytes a block.
  static void StoreCodes(I low, I high, uint8_t* out) {
    const I first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const I second = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    _mm512_storeu_si512(out, _mm512_permutex2var_epi32(low, first, high));
    _mm512_storeu_si512(out + 64, _mm512_permutex2var_epi32(low, second, high));
  }

  // 8 consecutive dwords of each of 16 blocks, block b at src + b * stride bytes, to d[j] = dword j of all blocks.
  static void Transpose8(const char* src, int64_t stride, I d[8]) {
    I r[8];
    for (int k = 0; k < 8; ++k) {  // r[k] = block (k, or k+4 from 4 on), and the one 4 further, side by side
      const char* p = src + (k < 4 ? k : k + 4) * stride;
      r[k] = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))),
                                _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 4 * stride)), 1);
    }
    I u[8];
    for (int h = 0; h < 2; ++h) {  // 4x4 within each 128-bit lane
      const I* a = r + 4 * h;
      const I t0 = _mm512_unpacklo_epi32(a[0], a[1]), t1 = _mm512_unpackhi_epi32(a[0], a[1]);
      const I t2 = _mm512_unpacklo_epi32(a[2], a[3]), t3 = _mm512_unpackhi_epi32(a[2], a[3]);
      u[4 * h] = _mm512_unpacklo_epi64(t0, t2), u[4 * h + 1] = _mm512_unpackhi_epi64(t0, t2);
      u[4 * h + 2] = _mm512_unpacklo_epi64(t1, t3), u[4 * h + 3] = _mm512_unpackhi_epi64(t1, t3);
    }
    for (int j = 0; j < 4; ++j) {
      d[j] = _mm512_shuffle_i32x4(u[j], u[4 + j], 0x88);
      d[j + 4] = _mm512_shuffle_i32x4(u[j], u[4 + j], 0xDD);
    }
  }

  static void HalfToFloat(const void* src, float* out) {  // 16 values
    _mm512_store_ps(out, _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(src))));
  }
};

}  // namespace
}  // namespace halfbyte::kernels::quantize
