// How the panels of common/layout.h become pairs of BF16 for vdpbf16ps (policies of common/linear_template.h). Include after
// that; for files with AVX512_BF16.
#pragma once

namespace halfbyte::kernels::cpu {
namespace {

constexpr int kDotRowsAtOnce = 12;
constexpr int DotPanelsFor(int rows) { return rows <= 4 ? 4 : 2; }

// x as pairs of BF16, two products a lane and unit.
struct Bf16Unit {
  using Unit = uint32_t;
  using Wide = __m512i;
  using Factor = __m512i;
  using Raw = __m512i;
  static constexpr int kUnitDepth = 2, kTileRows = kDotRowsAtOnce;
  static constexpr int Panels(int rows) { return DotPanelsFor(rows); }
  static Raw Load(const std::byte* p) { return _mm512_loadu_si512(p); }
  static Wide Broadcast(const uint32_t* x) { return _mm512_set1_epi32(static_cast<int>(*x)); }
  static V16 Mac(V16 acc, Wide x, Factor w) { return {_mm512_dpbf16_ps(acc.v, (__m512bh)x, (__m512bh)w)}; }
};

struct DotBf16 : Bf16Unit, PlainWeights {
  static constexpr int kRawBytesPerValue = 2;
  static constexpr int kUnits = 1;
  static __m512i Get(Raw raw, int) { return raw; }
};

// A decoded copy of weights that have an outer scale.
struct DotDecoded : DotBf16 {
  static constexpr bool kOuter = true, kInCache = true;
};

// A 16-bit word holds a code of the pair (k, k+1) in its high byte and one of (k+2, k+3) in its low byte. The code's bits moved
// to BF16's exponent and mantissa, with bits 11 to 13 set, are the value times 2^-8 if the code's exponent is not 0.
struct DotFp8Raw : Bf16Unit {
  static constexpr int kUnits = 2;
  static __m512i Normal(__m512i high) {
    constexpr int kAndOr = 0xEA;  // (a & b) | c
    return _mm512_ternarylogic_epi32(_mm512_srai_epi16(high, 4), _mm512_set1_epi16(static_cast<short>(0x87F0)),
                                     _mm512_set1_epi16(0x3800), kAndOr);
  }
  static __m512i High(Raw raw, int j) { return j ? _mm512_slli_epi16(raw, 8) : raw; }
};
struct DotFp8Fast : DotFp8Raw {
  static __m512i Get(Raw raw, int j) { return Normal(High(raw, j)); }
};
// Codes of exponent 0 are looked up: m * 2^-9 * 2^-8. (vdpbf16ps takes subnormal BF16 for zero, so moving bits alone will not
// do.)
struct DotFp8Slow : DotFp8Raw {
  static __m512i Get(Raw raw, int j) {
    alignas(64) static constexpr uint16_t kSmall[32] = {0, 0x3700, 0x3780, 0x37C0, 0x3800, 0x3820, 0x3840, 0x3860};
    __m512i high = High(raw, j), normal = Normal(high);
    __mmask32 small = _mm512_testn_epi16_mask(high, _mm512_set1_epi16(0x7800));
    __m512i magnitude = _mm512_permutexvar_epi16(_mm512_srli_epi16(high, 8), _mm512_load_si512(kSmall));
    __m512i value = _mm512_or_si512(magnitude, _mm512_and_si512(high, _mm512_set1_epi16(static_cast<short>(0x8000))));
    return _mm512_mask_mov_epi16(normal, small, value);
  }
};
struct DotFp8 : DotFp8Raw, Fp8Blocks<DotFp8Fast, DotFp8Slow> {
  static constexpr int Panels(int rows) { return DotPanelsFor(rows); }
};

// vpermw looks up the codes of a pair: it uses 5 bits of a word, of which the fifth belongs to the next code, so the table stands
// there twice.
struct DotNvfp4Raw : Bf16Unit {
  static constexpr int kUnits = 4;
  static __m512i Get(Raw raw, int j) {
    alignas(64) static constexpr uint16_t kValues[32] = {0x0000, 0x3F00, 0x3F80, 0x3FC0, 0x4000, 0x4040, 0x4080, 0x40C0,
                                                         0x8000, 0xBF00, 0xBF80, 0xBFC0, 0xC000, 0xC040, 0xC080, 0xC0C0,
                                                         0x0000, 0x3F00, 0x3F80, 0x3FC0, 0x4000, 0x4040, 0x4080, 0x40C0,
                                                         0x8000, 0xBF00, 0xBF80, 0xBFC0, 0xC000, 0xC040, 0xC080, 0xC0C0};
    return _mm512_permutexvar_epi16(_mm512_srli_epi16(raw, static_cast<unsigned>(4 * j)), _mm512_load_si512(kValues));
  }
};
struct DotNvfp4 : DotNvfp4Raw, Nvfp4Blocks<DotNvfp4Raw> {
  static constexpr int Panels(int rows) { return DotPanelsFor(rows); }
};

}  // namespace
}  // namespace halfbyte::kernels::cpu
