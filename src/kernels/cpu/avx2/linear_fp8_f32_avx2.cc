// E4M3 weights widened to FP32; each scale's columns are summed alone, then scaled. Bytes: 1 a weight.
// A byte's bits moved to a float's exponent and mantissa are its value times 2^-120, subnormals included; a multiplication by 2^120 makes it exact.
#include "kernels/cpu/avx2/vec.h"
#include "kernels/cpu/common/math.h"
#include "kernels/cpu/common/linear_template.h"
#include "kernels/cpu/avx2/kernels.h"
#include "kernels/cpu/avx2/raw.h"

namespace halfbyte::kernels::cpu {
namespace {

inline __m256 Widen(__m256i raw, int j) {
  // Byte order of a lane: k+2, k, k+3, k+1.
  __m256i top = j == 0 ? _mm256_slli_epi32(raw, 16) : j == 1 ? raw : j == 2 ? _mm256_slli_epi32(raw, 24) : _mm256_slli_epi32(raw, 8);
  __m256i bits = _mm256_and_si256(_mm256_srai_epi32(top, 4), _mm256_set1_epi32(static_cast<int>(0x87F00000)));
  return _mm256_mul_ps(_mm256_castsi256_ps(bits), _mm256_set1_ps(0x1p120f));
}

struct Weights : F32Unit, Fp8Blocks<4, 64> {
  using Raw = Raw16;
  static constexpr int kUnits = 4, kStepBytes = 64, kTileRows = 4;
  static constexpr int Panels(int rows) { return rows <= 2 ? 2 : 1; }
  static Raw Load(const std::byte* p) { return LoadRaw(p); }
  static V16 Get(Raw raw, int j) { return {Widen(raw.a, j), Widen(raw.b, j)}; }
};

}  // namespace

const LinearKernel kLinearFp8F32Avx2 = {"linear_fp8_f32_avx2", "avx2", HasAvx2, LinearKind::kFp8, RowType::kF32,
                                        Weights::kTileRows, &LinearRange<Weights>, &LinearRange<Weights>};

}  // namespace halfbyte::kernels::cpu
