// BF16 weights, BF16 rows, vdpbf16ps. Bytes: 2 a weight; one dot product for 32 weights and a row, 64 FLOP at one a cycle.
#include "kernels/cpu/avx512/vec.h"
#include "kernels/cpu/common/math.h"
#include "kernels/cpu/common/linear_template.h"
#include "kernels/cpu/avx512/bf16_unit.h"
#include "kernels/cpu/avx512/kernels.h"

namespace halfbyte::kernels::cpu {
namespace {

struct Weights : Bf16Unit {
  using Raw = __m512i;
  static constexpr int kUnits = 1, kStepBytes = 64, kTileRows = 12;
  static constexpr bool kScaled = false, kOuter = false;
  static constexpr float kOuterFactor = 1.0f;
  static constexpr int Panels(int rows) { return rows <= 4 ? 4 : 2; }
  static int64_t Steps(const LinearView& v, int64_t) { return v.k_padded / 2; }
  static Raw Load(const std::byte* p) { return _mm512_loadu_si512(p); }
  static __m512i Get(Raw raw, int) { return raw; }
};

}  // namespace

const LinearKernel kLinearBf16Bf16Avx512Bf16 = {"linear_bf16_bf16_avx512bf16", "avx512bf16", HasAvx512Bf16, LinearKind::kBf16, RowType::kBf16,
                                       Weights::kTileRows, &LinearRange<Weights>, &LinearRange<Weights>};

}  // namespace halfbyte::kernels::cpu
