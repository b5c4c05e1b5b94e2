// BF16 weights, FP32 arithmetic: the exact form, and the rounded one where BF16 dot products are slower than FMAs or missing.
// Bytes: 2 a weight; 64 bytes cost two shifts and masks beside the FMAs.
#include "kernels/cpu/avx2/vec.h"
#include "kernels/cpu/common/math.h"
#include "kernels/cpu/common/linear_template.h"
#include "kernels/cpu/avx2/weights.h"
#include "kernels/cpu/common/decode_template.h"
#include "kernels/cpu/avx2/kernels.h"

namespace halfbyte::kernels::cpu {
namespace {

// Few tiles widen pairs as they come; from 4 on it is cheaper to widen a panel once. The sums are the same.
void Run(const LinearCall& c, int64_t panel_begin, int64_t panel_end, int64_t tile_begin, int64_t tile_end) {
  if (tile_end - tile_begin < 4) LinearRange<Bf16Weights>(c, panel_begin, panel_end, tile_begin, tile_end);
  else DecodedRange<DecodeBf16, F32Weights>(c, panel_begin, panel_end, tile_begin, tile_end);
}

}  // namespace

const LinearKernel kLinearBf16F32Avx2 = {
    "linear_bf16_f32_avx2",    "avx2", HasAvx2, LinearKind::kBf16, RowType::kF32, kRowsAtOnce, &Run, &Run,
    &DecodedBytes<F32Weights>, false};

}  // namespace halfbyte::kernels::cpu
