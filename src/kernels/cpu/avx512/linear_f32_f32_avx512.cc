// F32 weights, FP32 arithmetic. Bytes: 4 a weight; operations: 2 a weight and row, at 32 FMA lanes a cycle.
#include "kernels/cpu/avx512/vec.h"
#include "kernels/cpu/common/math.h"
#include "kernels/cpu/common/linear_template.h"
#include "kernels/cpu/avx512/weights.h"
#include "kernels/cpu/avx512/kernels.h"

namespace halfbyte::kernels::cpu {

const LinearKernel kLinearF32F32Avx512 = {
    "linear_f32_f32_avx512",  "avx512", HasAvx512, LinearKind::kF32, RowType::kF32, kRowsAtOnce, &LinearRange<F32Weights>,
    &LinearRange<F32Weights>, nullptr,  false};

}  // namespace halfbyte::kernels::cpu
