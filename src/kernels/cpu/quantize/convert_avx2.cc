// Streaming conversions around the quantizers, AVX2: as convert_avx512.cc.
#include <immintrin.h>

#include <cstring>

#include "kernels/cpu/quantize/block_kernels.h"

namespace halfbyte::kernels::quantize {
namespace {

int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }  // no std:: template here may be compiled for AVX2 and linked elsewhere

// Reads the last, incomplete vector of a run.
template <typename T>
struct Padded {
  alignas(32) T values[32 / sizeof(T)] = {};
  Padded(const T* src, int64_t n) { std::memcpy(values, src, n * sizeof(T)); }
  __m256i Load() const { return _mm256_load_si256(reinterpret_cast<const __m256i*>(values)); }
};

template <typename T>
__m256i LoadRest(const T* src, int64_t n) { return Padded<T>(src, n).Load(); }

uint32_t LargestDword(__m256i v) {
  const __m128i half = _mm_max_epu32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  const __m128i pair = _mm_max_epu32(half, _mm_shuffle_epi32(half, 0x4E));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_max_epu32(pair, _mm_shuffle_epi32(pair, 0xB1))));
}

uint32_t MaxBits16(const uint16_t* src, int64_t n) {
  const __m256i mask = _mm256_set1_epi16(0x7FFF);
  __m256i best[4] = {};
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    for (int k = 0; k < 4; ++k) {
      const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(src + i + 16 * k));
      best[k] = _mm256_max_epu16(best[k], _mm256_and_si256(v, mask));
    }
  }
  for (; i < n; i += 16) best[0] = _mm256_max_epu16(best[0], _mm256_and_si256(LoadRest(src + i, Least(16, n - i)), mask));
  const __m256i all = _mm256_max_epu16(_mm256_max_epu16(best[0], best[1]), _mm256_max_epu16(best[2], best[3]));
  return LargestDword(_mm256_max_epu32(_mm256_and_si256(all, _mm256_set1_epi32(0xFFFF)), _mm256_srli_epi32(all, 16)));
}

uint32_t MaxBits32(const uint32_t* src, int64_t n) {
  const __m256i mask = _mm256_set1_epi32(0x7FFFFFFF);
  __m256i best[4] = {};
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    for (int k = 0; k < 4; ++k) {
      const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(src + i + 8 * k));
      best[k] = _mm256_max_epu32(best[k], _mm256_and_si256(v, mask));
    }
  }
  for (; i < n; i += 8) best[0] = _mm256_max_epu32(best[0], _mm256_and_si256(LoadRest(src + i, Least(8, n - i)), mask));
  return LargestDword(_mm256_max_epu32(_mm256_max_epu32(best[0], best[1]), _mm256_max_epu32(best[2], best[3])));
}

__m128i RoundToBf16(__m256 v) {
  const __m256i bits = _mm256_castps_si256(v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd);
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  const __m256i quiet = _mm256_blendv_epi8(rounded, _mm256_or_si256(bits, _mm256_set1_epi32(0x400000)), nan);
  const __m256i words = _mm256_srli_epi32(quiet, 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

template <bool kE4m3>
__m256 Fp8ToFloat(__m128i bytes) {  // the lower eight
  const __m128i words = _mm_cvtepu8_epi16(bytes);
  if (!kE4m3) return _mm256_cvtph_ps(_mm_slli_epi16(words, 8));
  const __m128i magnitude = _mm_slli_epi16(_mm_and_si128(words, _mm_set1_epi16(0x7F)), 7);
  const __m128i sign = _mm_slli_epi16(_mm_and_si128(words, _mm_set1_epi16(0x80)), 8);
  const __m128i nan = _mm_cmpeq_epi16(magnitude, _mm_set1_epi16(0x7F << 7));
  const __m128i half = _mm_blendv_epi8(magnitude, _mm_set1_epi16(0x7E00), nan);
  return _mm256_mul_ps(_mm256_cvtph_ps(_mm_or_si128(half, sign)), _mm256_set1_ps(256.0f));
}

template <bool kE4m3>
void ConvertFp8(const uint8_t* elements, int64_t n, float scale, uint16_t* out) {
  const __m256 s = _mm256_set1_ps(scale);
  const auto convert = [&](__m128i bytes) { return RoundToBf16(_mm256_mul_ps(Fp8ToFloat<kE4m3>(bytes), s)); };
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(elements + i));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), convert(bytes));
  }
  if (i == n) return;
  alignas(16) uint16_t last[8];
  _mm_store_si128(reinterpret_cast<__m128i*>(last), convert(_mm256_castsi256_si128(LoadRest(elements + i, n - i))));
  std::memcpy(out + i, last, (n - i) * 2);
}

}  // namespace

uint32_t MaxBitsAvx2(const void* src, tensor::DType dtype, int64_t n) {
  return dtype == tensor::DType::kF32 ? MaxBits32(static_cast<const uint32_t*>(src), n) : MaxBits16(static_cast<const uint16_t*>(src), n);
}

void Fp8ToBf16Avx2(const uint8_t* elements, tensor::DType dtype, int64_t n, float scale, uint16_t* out) {
  if (dtype == tensor::DType::kF8E4M3) return ConvertFp8<true>(elements, n, scale, out);
  ConvertFp8<false>(elements, n, scale, out);
}

void F32ToBf16Avx2(const float* src, int64_t n, uint16_t* out) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), RoundToBf16(_mm256_loadu_ps(src + i)));
  if (i == n) return;
  alignas(16) uint16_t last[8];
  _mm_store_si128(reinterpret_cast<__m128i*>(last), RoundToBf16(_mm256_castsi256_ps(LoadRest(src + i, n - i))));
  std::memcpy(out + i, last, (n - i) * 2);
}

}  // namespace halfbyte::kernels::quantize
