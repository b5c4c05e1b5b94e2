// NVFP4 tiles to BF16 panels with AVX-512, and the table that makes it. Internal linkage: the including files have flags of their own.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/moe/kernel.h"
#include "kernels/cpu/moe/vector_math_avx512.h"

namespace halfbyte::kernels::cpu::moe {
namespace {

// The 16 E2M1 values as BF16, twice: vpermw looks at 5 bits of an index, so the bit above a nibble does not matter.
[[maybe_unused]] inline __m512i Bf16Table() {
  const __m256i once = _mm256_setr_epi16(0x0000, 0x3F00, 0x3F80, 0x3FC0, 0x4000, 0x4040, 0x4080, 0x40C0, static_cast<short>(0x8000), static_cast<short>(0xBF00),
                                         static_cast<short>(0xBF80), static_cast<short>(0xBFC0), static_cast<short>(0xC000), static_cast<short>(0xC040),
                                         static_cast<short>(0xC080), static_cast<short>(0xC0C0));
  return _mm512_broadcast_i64x4(once);
}

// A block of 16 inner values (`b` of the tile's group `group`): codes times block scales, exactly (E2M1 x E4M3 has 6 significant bits). out: 512 bytes,
// [k/2][lane][2].
[[maybe_unused]] inline void DecodeBlockToBf16(const std::byte* group, int64_t b, __m512i table, std::byte* out) {
  const __m512i high = _mm512_set1_epi32(static_cast<int>(0xFFFF0000));
  const __m512 scale = _mm512_mul_ps(E4m3Scaled(group + 512 + b * kTile), _mm512_set1_ps(256.0f));
#pragma GCC unroll 2
  for (int v = 0; v < 2; ++v) {
    const __m512i codes = _mm512_load_si512(group + b * 128 + v * 64);
#pragma GCC unroll 4
    for (int s = 0; s < 4; ++s, out += 64) {
      // Both words as FP32 (a BF16 is the upper half of one), scaled, and the products' upper halves put together again. (In FP16 arithmetic with an
      // integer step to BF16, tried: 25 instead of 24 G weights/s, and it needs AVX512-FP16.)
      const __m512i pair = _mm512_permutexvar_epi16(_mm512_srli_epi32(codes, 4 * s), table);
      const __m512i even = _mm512_castps_si512(_mm512_mul_ps(_mm512_castsi512_ps(_mm512_slli_epi32(pair, 16)), scale));
      const __m512i odd = _mm512_castps_si512(_mm512_mul_ps(_mm512_castsi512_ps(_mm512_and_si512(pair, high)), scale));
      _mm512_store_si512(out, _mm512_or_si512(_mm512_srli_epi32(even, 16), odd));
    }
  }
}

[[maybe_unused]] void DecodeNvfp4ToBf16(const DecodeCall& c) {
  const __m512i table = Bf16Table();
  std::byte* out = c.panel;
  for (int64_t b = c.k_begin / kG; b < c.k_end / kG; ++b, out += 512) {
    const std::byte* group = c.tile + b / 4 * Nvfp4GroupBytes();
    if (b % 4 == 0) PrefetchGroup(group);
    DecodeBlockToBf16(group, b % 4, table, out);
  }
}

}  // namespace
}  // namespace halfbyte::kernels::cpu::moe
