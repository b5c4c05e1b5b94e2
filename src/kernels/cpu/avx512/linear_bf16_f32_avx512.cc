// BF16 weights widened to FP32: the exact form, and the rounded one on machines without BF16 dot products.
// Bytes: 2 a weight; a 64-byte vector costs a shift, a mask and 2 FMAs a row.
#include "kernels/cpu/avx512/vec.h"
#include "kernels/cpu/common/math.h"
#include "kernels/cpu/common/linear_template.h"
#include "kernels/cpu/avx512/kernels.h"

namespace halfbyte::kernels::cpu {
namespace {

struct Weights : F32Unit {
  using Raw = __m512i;
  static constexpr int kUnits = 2, kStepBytes = 64, kTileRows = 12;
  static constexpr bool kScaled = false, kOuter = false;
  static constexpr float kOuterFactor = 1.0f;
  static constexpr int Panels(int rows) { return rows <= 4 ? 4 : 2; }
  static int64_t Steps(const LinearView& v, int64_t) { return v.k_padded / 2; }
  static Raw Load(const std::byte* p) { return _mm512_loadu_si512(p); }
  static V16 Get(Raw raw, int j) {
    return {_mm512_castsi512_ps(j ? _mm512_and_si512(raw, _mm512_set1_epi32(static_cast<int>(0xFFFF0000))) : _mm512_slli_epi32(raw, 16))};
  }
};

}  // namespace

const LinearKernel kLinearBf16F32Avx512 = {"linear_bf16_f32_avx512", "avx512", HasAvx512, LinearKind::kBf16, RowType::kF32,
                                       Weights::kTileRows, &LinearRange<Weights>, &LinearRange<Weights>};

}  // namespace halfbyte::kernels::cpu
