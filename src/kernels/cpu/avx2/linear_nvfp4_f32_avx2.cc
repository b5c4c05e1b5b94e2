// NVFP4 weights, FP32 arithmetic: a block of 16 codes is summed alone, then scaled. Bytes: 0.5625 a weight.
// vpermps of 8 entries looks up the magnitude (it uses 3 bits of a lane); the code's sign bit is moved to the float's.
#include "kernels/cpu/avx2/vec.h"
#include "kernels/cpu/common/math.h"
#include "kernels/cpu/common/linear_template.h"
#include "kernels/cpu/avx2/kernels.h"
#include "kernels/cpu/avx2/raw.h"

namespace halfbyte::kernels::cpu {
namespace {

inline __m256 Decode(__m256i raw, int j) {
  const __m256 magnitudes = _mm256_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f);
  int shift = 4 * (j / 2) + 16 * (j % 2);
  __m256 magnitude = _mm256_permutevar8x32_ps(magnitudes, _mm256_srli_epi32(raw, shift));
  __m256i sign = _mm256_and_si256(_mm256_slli_epi32(raw, 28 - shift), _mm256_set1_epi32(static_cast<int>(0x80000000)));
  return _mm256_xor_ps(magnitude, _mm256_castsi256_ps(sign));
}

struct Weights : F32Unit, Nvfp4Blocks {
  using Raw = Raw16;
  static constexpr int kUnits = 8, kStepBytes = 64, kTileRows = 4;
  static constexpr int Panels(int rows) { return rows <= 2 ? 2 : 1; }
  static Raw Load(const std::byte* p) { return LoadRaw(p); }
  static V16 Get(Raw raw, int j) { return {Decode(raw.a, j), Decode(raw.b, j)}; }
};

}  // namespace

const LinearKernel kLinearNvfp4F32Avx2 = {"linear_nvfp4_f32_avx2", "avx2", HasAvx2, LinearKind::kNvfp4, RowType::kF32,
                                          Weights::kTileRows, &LinearRange<Weights>, &LinearRange<Weights>};

}  // namespace halfbyte::kernels::cpu
