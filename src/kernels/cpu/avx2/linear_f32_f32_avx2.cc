// F32 weights, FP32 arithmetic. Bytes: 4 a weight; operations: 2 a weight and row, at 16 FMA lanes a cycle.
#include "kernels/cpu/avx2/vec.h"
#include "kernels/cpu/common/math.h"
#include "kernels/cpu/common/linear_template.h"
#include "kernels/cpu/avx2/kernels.h"

namespace halfbyte::kernels::cpu {
namespace {

struct Weights : F32Unit {
  using Raw = V16;
  static constexpr int kUnits = 1, kStepBytes = 64, kTileRows = 6;
  static constexpr bool kScaled = false, kOuter = false;
  static constexpr float kOuterFactor = 1.0f;
  static constexpr int Panels(int rows) { return rows == 1 ? 4 : rows <= 3 ? 2 : 1; }
  static int64_t Steps(const LinearView& v, int64_t) { return v.k_padded; }
  static Raw Load(const std::byte* p) { return ::halfbyte::kernels::cpu::Load(reinterpret_cast<const float*>(p)); }
  static V16 Get(Raw raw, int) { return raw; }
};

}  // namespace

const LinearKernel kLinearF32F32Avx2 = {"linear_f32_f32_avx2", "avx2", HasAvx2, LinearKind::kF32, RowType::kF32,
                                        Weights::kTileRows, &LinearRange<Weights>, &LinearRange<Weights>};

}  // namespace halfbyte::kernels::cpu
