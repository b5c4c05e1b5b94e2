// How the panels of common/layout.h become factors in FP32 arithmetic (policies of common/linear_template.h). Include after that.
#pragma once

namespace halfbyte::kernels::cpu {
namespace {

constexpr int kRowsAtOnce = 6;  // 12 sums of 8 lanes; the factors and a broadcast take the other 4 registers
constexpr int PanelsFor(int rows) { return rows == 1 ? 4 : rows <= 3 ? 2 : 1; }

struct F32Weights : F32Unit, PlainWeights {
  static constexpr int kRawBytesPerValue = 4;
  using Raw = V16;
  static constexpr int kUnits = 1, kTileRows = kRowsAtOnce;
  static constexpr int Panels(int rows) { return PanelsFor(rows); }
  static Raw Load(const std::byte* p) { return cpu::Load(reinterpret_cast<const float*>(p)); }
  static V16 Get(Raw raw, int) { return raw; }
};

// A decoded copy of weights that have an outer scale.
struct DecodedWeights : F32Weights {
  static constexpr bool kOuter = true, kInCache = true;
};

// 64 bytes of a panel in two registers: 16 lanes of 32 bits.
struct Raw16 {
  __m256i a, b;
};
inline Raw16 LoadRaw(const std::byte* p) {
  auto* q = reinterpret_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(q), _mm256_loadu_si256(q + 1)};
}

// A shift and a mask widen the pair.
struct Bf16Weights : F32Unit, PlainWeights {
  static constexpr int kRawBytesPerValue = 2;
  using Raw = Raw16;
  static constexpr int kUnits = 2, kTileRows = kRowsAtOnce;
  static constexpr int Panels(int rows) { return PanelsFor(rows); }
  static Raw Load(const std::byte* p) { return LoadRaw(p); }
  static __m256 Half(__m256i raw, int j) {
    return _mm256_castsi256_ps(j ? _mm256_and_si256(raw, _mm256_set1_epi32(static_cast<int>(0xFFFF0000)))
                                 : _mm256_slli_epi32(raw, 16));
  }
  static V16 Get(Raw raw, int j) { return {Half(raw.a, j), Half(raw.b, j)}; }
};

// An E4M3 byte's bits moved to a float's exponent and mantissa are its value times 2^-120, subnormals included; a multiplication
// makes it exact. (A form without the multiplication, for codes of exponent 1 and more, would need an OR instead: nothing gained
// without vpternlogd.) Byte order of a lane: k+2, k, k+3, k+1.
struct Fp8Raw : F32Unit {
  using Raw = Raw16;
  static constexpr int kUnits = 4, kTileRows = kRowsAtOnce;
  static Raw Load(const std::byte* p) { return LoadRaw(p); }
  static __m256 Half(__m256i raw, int j) {
    __m256i top = j == 0   ? _mm256_slli_epi32(raw, 16)
                  : j == 1 ? raw
                  : j == 2 ? _mm256_slli_epi32(raw, 24)
                           : _mm256_slli_epi32(raw, 8);
    __m256i bits = _mm256_and_si256(_mm256_srai_epi32(top, 4), _mm256_set1_epi32(static_cast<int>(0x87F00000)));
    return _mm256_mul_ps(_mm256_castsi256_ps(bits), _mm256_set1_ps(0x1p112f));
  }
  static V16 Get(Raw raw, int j) { return {Half(raw.a, j), Half(raw.b, j)}; }
};
using Fp8Slow = Fp8Raw;
struct Fp8Weights : Fp8Raw, Fp8Blocks<Fp8Raw, Fp8Raw> {
  static constexpr int Panels(int rows) { return rows <= 3 ? 2 : 1; }
};

// vpermps of 8 entries looks up the magnitude (it uses 3 bits of a lane); the code's sign bit is moved to the float's.
struct Nvfp4Raw : F32Unit {
  using Raw = Raw16;
  static constexpr int kUnits = 8, kTileRows = kRowsAtOnce;
  static Raw Load(const std::byte* p) { return LoadRaw(p); }
  static __m256 Half(__m256i raw, int j) {
    const __m256 magnitudes = _mm256_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f);
    int shift = 4 * (j / 2) + 16 * (j % 2);
    __m256 magnitude = _mm256_permutevar8x32_ps(magnitudes, _mm256_srli_epi32(raw, shift));
    __m256i sign = _mm256_and_si256(_mm256_slli_epi32(raw, 28 - shift), _mm256_set1_epi32(static_cast<int>(0x80000000)));
    return _mm256_xor_ps(magnitude, _mm256_castsi256_ps(sign));
  }
  static V16 Get(Raw raw, int j) { return {Half(raw.a, j), Half(raw.b, j)}; }
};
struct Nvfp4Weights : Nvfp4Raw, Nvfp4Blocks<Nvfp4Raw> {
  static constexpr int Panels(int rows) { return rows <= 3 ? 2 : 1; }
};

}  // namespace
}  // namespace halfbyte::kernels::cpu
