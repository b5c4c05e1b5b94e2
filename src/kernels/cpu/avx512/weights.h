// How the panels of common/layout.h become factors in FP32 arithmetic (policies of common/linear_template.h). Include after that.
#pragma once

namespace halfbyte::kernels::cpu {
namespace {

constexpr int kRowsAtOnce = 12;  // with two panels 24 sums; 2 factors, a broadcast and constants fill the other registers
constexpr int PanelsFor(int rows) { return rows <= 4 ? 4 : 2; }

struct F32Weights : F32Unit, PlainWeights {
  static constexpr int kRawBytesPerValue = 4;
  using Raw = V16;
  static constexpr int kUnits = 1, kTileRows = kRowsAtOnce;
  static constexpr int Panels(int rows) { return PanelsFor(rows); }
  static Raw Load(const std::byte* p) { return {_mm512_loadu_ps(p)}; }
  static V16 Get(Raw raw, int) { return raw; }
};

// A decoded copy of weights that have an outer scale.
struct DecodedWeights : F32Weights {
  static constexpr bool kOuter = true, kInCache = true;
};

// A shift and a mask widen the pair.
struct Bf16Weights : F32Unit, PlainWeights {
  static constexpr int kRawBytesPerValue = 2;
  using Raw = __m512i;
  static constexpr int kUnits = 2, kTileRows = kRowsAtOnce;
  static constexpr int Panels(int rows) { return PanelsFor(rows); }
  static Raw Load(const std::byte* p) { return _mm512_loadu_si512(p); }
  static V16 Get(Raw raw, int j) {
    return {_mm512_castsi512_ps(j ? _mm512_and_si512(raw, _mm512_set1_epi32(static_cast<int>(0xFFFF0000)))
                                  : _mm512_slli_epi32(raw, 16))};
  }
};

// An E4M3 byte's bits moved to a float's exponent and mantissa are its value times 2^-120. Byte order of a lane: k+2, k, k+3,
// k+1.
struct Fp8Raw : F32Unit {
  using Raw = __m512i;
  static constexpr int kUnits = 4, kTileRows = kRowsAtOnce;
  static Raw Load(const std::byte* p) { return _mm512_loadu_si512(p); }
  static __m512i Top(Raw raw, int j) {
    return j == 0 ? _mm512_slli_epi32(raw, 16) : j == 1 ? raw : j == 2 ? _mm512_slli_epi32(raw, 24) : _mm512_slli_epi32(raw, 8);
  }
};
// Exponents of 1 and more: bits 27 to 29 set add 112 to the exponent field, in the same operation as the mask.
struct Fp8Fast : Fp8Raw {
  static __m512i Normal(__m512i top) {
    constexpr int kAndOr = 0xEA;  // (a & b) | c
    return _mm512_ternarylogic_epi32(_mm512_srai_epi32(top, 4), _mm512_set1_epi32(static_cast<int>(0x87F00000)),
                                     _mm512_set1_epi32(0x38000000), kAndOr);
  }
  static V16 Get(Raw raw, int j) { return {_mm512_castsi512_ps(Normal(Top(raw, j)))}; }
};
// Exponent 0 is looked up: m * 2^-9 * 2^-8. (Multiplying the moved bits by 2^112 would be right too, but a subnormal operand
// costs Intel some 150 cycles.)
struct Fp8Slow : Fp8Raw {
  static V16 Get(Raw raw, int j) {
    const __m512 small =
        _mm512_setr_ps(0.0f, 0x1p-17f, 0x2p-17f, 0x3p-17f, 0x4p-17f, 0x5p-17f, 0x6p-17f, 0x7p-17f, 0, 0, 0, 0, 0, 0, 0, 0);
    __m512i top = Top(raw, j), normal = Fp8Fast::Normal(top);
    __mmask16 is_small = _mm512_testn_epi32_mask(top, _mm512_set1_epi32(0x78000000));
    __m512 value = _mm512_mask_permutexvar_ps(_mm512_castsi512_ps(normal), is_small, _mm512_srli_epi32(top, 24), small);
    return {_mm512_or_ps(value, _mm512_castsi512_ps(_mm512_and_si512(top, _mm512_set1_epi32(static_cast<int>(0x80000000)))))};
  }
};
struct Fp8Weights : Fp8Raw, Fp8Blocks<Fp8Fast, Fp8Slow> {
  static constexpr int Panels(int rows) { return rows <= 4 ? 4 : 2; }
};

// vpermps looks up the codes' values: it uses the low 4 bits of a lane, so a shift is all that a code needs.
struct Nvfp4Raw : F32Unit {
  using Raw = __m512i;
  static constexpr int kUnits = 8, kTileRows = kRowsAtOnce;
  static Raw Load(const std::byte* p) { return _mm512_loadu_si512(p); }
  static V16 Get(Raw raw, int j) {
    const __m512 values =
        _mm512_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f, -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f);
    return {_mm512_permutexvar_ps(_mm512_srli_epi32(raw, static_cast<unsigned>(4 * (j / 2) + 16 * (j % 2))), values)};
  }
};
struct Nvfp4Weights : Nvfp4Raw, Nvfp4Blocks<Nvfp4Raw> {
  static constexpr int Panels(int rows) { return rows <= 2 ? 4 : 2; }
};

}  // namespace
}  // namespace halfbyte::kernels::cpu
