// BF16 weights, FP32 arithmetic: the exact form, and the rounded one where BF16 dot products are slower than FMAs or missing.
// Bytes: 2 a weight; 64 bytes cost a shift and mask beside the FMAs.
#include "kernels/cpu/avx512/vec.h"
#include "kernels/cpu/common/math.h"
#include "kernels/cpu/common/linear_template.h"
#include "kernels/cpu/avx512/weights.h"
#include "kernels/cpu/avx512/kernels.h"

namespace halfbyte::kernels::cpu {

const LinearKernel kLinearBf16F32Avx512 = {
    "linear_bf16_f32_avx512",  "avx512", HasAvx512, LinearKind::kBf16, RowType::kF32, kRowsAtOnce, &LinearRange<Bf16Weights>,
    &LinearRange<Bf16Weights>, nullptr,  false};

}  // namespace halfbyte::kernels::cpu
