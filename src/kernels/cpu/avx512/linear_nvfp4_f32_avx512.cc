// NVFP4 weights, FP32 arithmetic: a block of 16 codes is summed alone, then scaled. Bytes: 0.5625 a weight.
// vpermps looks up the codes' values: it uses the low 4 bits of a lane, so a shift is all that a code needs.
#include "kernels/cpu/avx512/vec.h"
#include "kernels/cpu/common/math.h"
#include "kernels/cpu/common/linear_template.h"
#include "kernels/cpu/avx512/kernels.h"

namespace halfbyte::kernels::cpu {
namespace {

struct Weights : F32Unit, Nvfp4Blocks {
  using Raw = __m512i;
  static constexpr int kUnits = 8, kStepBytes = 64, kTileRows = 8;
  static constexpr int Panels(int rows) { return rows <= 2 ? 4 : 2; }
  static Raw Load(const std::byte* p) { return _mm512_loadu_si512(p); }
  static V16 Get(Raw raw, int j) {
    const __m512 values = _mm512_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f, -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f);
    return {_mm512_permutexvar_ps(_mm512_srli_epi32(raw, static_cast<unsigned>(4 * (j / 2) + 16 * (j % 2))), values)};
  }
};

}  // namespace

const LinearKernel kLinearNvfp4F32Avx512 = {"linear_nvfp4_f32_avx512", "avx512", HasAvx512, LinearKind::kNvfp4, RowType::kF32,
                                       Weights::kTileRows, &LinearRange<Weights>, &LinearRange<Weights>};

}  // namespace halfbyte::kernels::cpu
