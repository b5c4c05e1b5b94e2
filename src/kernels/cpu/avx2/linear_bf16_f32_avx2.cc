// BF16 weights widened to FP32. Bytes: 2 a weight; a 32-byte vector costs a shift, a mask and 2 FMAs a row.
#include "kernels/cpu/avx2/vec.h"
#include "kernels/cpu/common/math.h"
#include "kernels/cpu/common/linear_template.h"
#include "kernels/cpu/avx2/kernels.h"
#include "kernels/cpu/avx2/raw.h"

namespace halfbyte::kernels::cpu {
namespace {

inline __m256 Widen(__m256i raw, int j) {
  return _mm256_castsi256_ps(j ? _mm256_and_si256(raw, _mm256_set1_epi32(static_cast<int>(0xFFFF0000))) : _mm256_slli_epi32(raw, 16));
}

struct Weights : F32Unit {
  using Raw = Raw16;
  static constexpr int kUnits = 2, kStepBytes = 64, kTileRows = 6;
  static constexpr bool kScaled = false, kOuter = false;
  static constexpr float kOuterFactor = 1.0f;
  static constexpr int Panels(int rows) { return rows == 1 ? 4 : rows <= 3 ? 2 : 1; }
  static int64_t Steps(const LinearView& v, int64_t) { return v.k_padded / 2; }
  static Raw Load(const std::byte* p) { return LoadRaw(p); }
  static V16 Get(Raw raw, int j) { return {Widen(raw.a, j), Widen(raw.b, j)}; }
};

}  // namespace

const LinearKernel kLinearBf16F32Avx2 = {"linear_bf16_f32_avx2", "avx2", HasAvx2, LinearKind::kBf16, RowType::kF32,
                                         Weights::kTileRows, &LinearRange<Weights>, &LinearRange<Weights>};

}  // namespace halfbyte::kernels::cpu
