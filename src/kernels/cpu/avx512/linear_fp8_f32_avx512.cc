// E4M3 weights widened to FP32; each scale's columns are summed alone, then scaled. Bytes: 1 a weight.
// A byte's bits moved to a float's exponent and mantissa are its value times 2^-120, subnormals included; a multiplication by 2^120 makes it exact.
#include "kernels/cpu/avx512/vec.h"
#include "kernels/cpu/common/math.h"
#include "kernels/cpu/common/linear_template.h"
#include "kernels/cpu/avx512/kernels.h"

namespace halfbyte::kernels::cpu {
namespace {

struct Weights : F32Unit, Fp8Blocks<4, 64> {
  using Raw = __m512i;
  static constexpr int kUnits = 4, kStepBytes = 64, kTileRows = 8;
  static constexpr int Panels(int rows) { return rows <= 4 ? 4 : 2; }
  static Raw Load(const std::byte* p) { return _mm512_loadu_si512(p); }
  static V16 Get(Raw raw, int j) {
    // Byte order of a lane: k+2, k, k+3, k+1.
    __m512i top = j == 0 ? _mm512_slli_epi32(raw, 16) : j == 1 ? raw : j == 2 ? _mm512_slli_epi32(raw, 24) : _mm512_slli_epi32(raw, 8);
    __m512i bits = _mm512_and_si512(_mm512_srai_epi32(top, 4), _mm512_set1_epi32(static_cast<int>(0x87F00000)));
    return {_mm512_mul_ps(_mm512_castsi512_ps(bits), _mm512_set1_ps(0x1p120f))};
  }
};

}  // namespace

const LinearKernel kLinearFp8F32Avx512 = {"linear_fp8_f32_avx512", "avx512", HasAvx512, LinearKind::kFp8, RowType::kF32,
                                       Weights::kTileRows, &LinearRange<Weights>, &LinearRange<Weights>};

}  // namespace halfbyte::kernels::cpu
