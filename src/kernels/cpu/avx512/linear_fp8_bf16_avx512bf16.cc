// FP8 weights, BF16 rows, vdpbf16ps: a code is exact in BF16, the columns of each scale are summed alone, then scaled. Bytes: 1 a
// weight; 64 weights cost 3 shifts, 2 logic operations and 2 dot products a row.
#include "kernels/cpu/avx512/vec.h"
#include "kernels/cpu/common/math.h"
#include "kernels/cpu/common/linear_template.h"
#include "kernels/cpu/avx512/dot_weights.h"
#include "kernels/cpu/avx512/kernels.h"

namespace halfbyte::kernels::cpu {

const LinearKernel kLinearFp8Bf16Avx512Bf16 = {"linear_fp8_bf16_avx512bf16",
                                               "avx512bf16",
                                               HasAvx512Bf16,
                                               LinearKind::kFp8,
                                               RowType::kBf16,
                                               kDotRowsAtOnce,
                                               &LinearRange<DotFp8>,
                                               &LinearRange<DotFp8>,
                                               nullptr,
                                               true};

}  // namespace halfbyte::kernels::cpu
