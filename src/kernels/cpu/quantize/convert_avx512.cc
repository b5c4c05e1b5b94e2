// Streaming conversions around the quantizers, AVX-512: largest magnitude, FP8 to BF16, FP32 to BF16.
#include <immintrin.h>

#include "kernels/cpu/quantize/block_kernels.h"

namespace halfbyte::kernels::quantize {
namespace {

uint32_t MaxBits16(const uint16_t* src, int64_t n) {
  const __m512i mask = _mm512_set1_epi16(0x7FFF);
  __m512i best[4] = {};
  int64_t i = 0;
  for (; i + 128 <= n; i += 128) {
    for (int k = 0; k < 4; ++k) best[k] = _mm512_max_epu16(best[k], _mm512_and_si512(_mm512_loadu_si512(src + i + 32 * k), mask));
  }
  for (; i < n; i += 32) {
    const __mmask32 valid = n - i >= 32 ? ~__mmask32{0} : (__mmask32{1} << (n - i)) - 1;
    best[0] = _mm512_max_epu16(best[0], _mm512_and_si512(_mm512_maskz_loadu_epi16(valid, src + i), mask));
  }
  const __m512i all = _mm512_max_epu16(_mm512_max_epu16(best[0], best[1]), _mm512_max_epu16(best[2], best[3]));
  const __m512i wide = _mm512_max_epu32(_mm512_and_si512(all, _mm512_set1_epi32(0xFFFF)), _mm512_srli_epi32(all, 16));
  return _mm512_reduce_max_epu32(wide);
}

uint32_t MaxBits32(const uint32_t* src, int64_t n) {
  const __m512i mask = _mm512_set1_epi32(0x7FFFFFFF);
  __m512i best[4] = {};
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    for (int k = 0; k < 4; ++k) best[k] = _mm512_max_epu32(best[k], _mm512_and_si512(_mm512_loadu_si512(src + i + 16 * k), mask));
  }
  for (; i < n; i += 16) {
    const __mmask16 valid = n - i >= 16 ? 0xFFFF : static_cast<__mmask16>((1u << (n - i)) - 1);
    best[0] = _mm512_max_epu32(best[0], _mm512_and_si512(_mm512_maskz_loadu_epi32(valid, src + i), mask));
  }
  return _mm512_reduce_max_epu32(_mm512_max_epu32(_mm512_max_epu32(best[0], best[1]), _mm512_max_epu32(best[2], best[3])));
}

// Nearest even; a NaN keeps its upper half and becomes quiet. (vcvtneps2bf16 would flush subnormals.)
__m256i RoundToBf16(__m512 v) {
  const __m512i bits = _mm512_castps_si512(v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), odd);
  const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
  const __m512i quiet = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(quiet, 16));
}

// E4M3 through FP16: sign and 7 bits placed as an FP16 are the value times 2^-8, subnormals included; only 0x7F and 0xFF, which would
// read as 480, must be made NaN. E5M2 is the upper byte of an FP16.
template <bool kE4m3>
__m512 Fp8ToFloat(__m128i bytes) {
  const __m256i words = _mm256_cvtepu8_epi16(bytes);
  if (!kE4m3) return _mm512_cvtph_ps(_mm256_slli_epi16(words, 8));
  const __m256i magnitude = _mm256_slli_epi16(_mm256_and_si256(words, _mm256_set1_epi16(0x7F)), 7);
  const __m256i sign = _mm256_slli_epi16(_mm256_and_si256(words, _mm256_set1_epi16(0x80)), 8);
  const __mmask16 nan = _mm256_cmpeq_epi16_mask(magnitude, _mm256_set1_epi16(0x7F << 7));
  const __m256i half = _mm256_mask_blend_epi16(nan, _mm256_or_si256(magnitude, sign), _mm256_or_si256(sign, _mm256_set1_epi16(0x7E00)));
  return _mm512_mul_ps(_mm512_cvtph_ps(half), _mm512_set1_ps(256.0f));
}

template <bool kE4m3>
void ConvertFp8(const uint8_t* elements, int64_t n, float scale, uint16_t* out) {
  const __m512 s = _mm512_set1_ps(scale);
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 valid = n - i >= 16 ? 0xFFFF : static_cast<__mmask16>((1u << (n - i)) - 1);
    const __m512 v = _mm512_mul_ps(Fp8ToFloat<kE4m3>(_mm_maskz_loadu_epi8(valid, elements + i)), s);
    _mm256_mask_storeu_epi16(out + i, valid, RoundToBf16(v));
  }
}

}  // namespace

uint32_t MaxBitsAvx512(const void* src, tensor::DType dtype, int64_t n) {
  return dtype == tensor::DType::kF32 ? MaxBits32(static_cast<const uint32_t*>(src), n) : MaxBits16(static_cast<const uint16_t*>(src), n);
}

void Fp8ToBf16Avx512(const uint8_t* elements, tensor::DType dtype, int64_t n, float scale, uint16_t* out) {
  if (dtype == tensor::DType::kF8E4M3) return ConvertFp8<true>(elements, n, scale, out);
  ConvertFp8<false>(elements, n, scale, out);
}

void F32ToBf16Avx512(const float* src, int64_t n, uint16_t* out) {
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 valid = n - i >= 16 ? 0xFFFF : static_cast<__mmask16>((1u << (n - i)) - 1);
    _mm256_mask_storeu_epi16(out + i, valid, RoundToBf16(_mm512_maskz_loadu_ps(valid, src + i)));
  }
}

}  // namespace halfbyte::kernels::quantize
