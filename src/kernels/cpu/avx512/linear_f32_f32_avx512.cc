// F32 weights, FP32 arithmetic. Bytes: 4 a weight; operations: 2 a weight and row, at 32 FMA lanes a cycle.
#include "kernels/cpu/avx512/vec.h"
#include "kernels/cpu/common/math.h"
#include "kernels/cpu/common/linear_template.h"
#include "kernels/cpu/avx512/kernels.h"

namespace halfbyte::kernels::cpu {
namespace {

struct Weights : F32Unit {
  using Raw = V16;
  static constexpr int kUnits = 1, kStepBytes = 64, kTileRows = 12;
  static constexpr bool kScaled = false, kOuter = false;
  static constexpr float kOuterFactor = 1.0f;
  static constexpr int Panels(int rows) { return rows <= 4 ? 4 : 2; }
  static int64_t Steps(const LinearView& v, int64_t) { return v.k_padded; }
  static Raw Load(const std::byte* p) { return {_mm512_loadu_ps(p)}; }
  static V16 Get(Raw raw, int) { return raw; }
};

}  // namespace

const LinearKernel kLinearF32F32Avx512 = {"linear_f32_f32_avx512", "avx512", HasAvx512, LinearKind::kF32, RowType::kF32,
                                       Weights::kTileRows, &LinearRange<Weights>, &LinearRange<Weights>};

}  // namespace halfbyte::kernels::cpu
