// BF16 weights, BF16 rows, vdpbf16ps. Bytes: 2 a weight; one dot product for 32 weights and a row (64 FLOP).
#include "kernels/cpu/avx512/vec.h"
#include "kernels/cpu/common/math.h"
#include "kernels/cpu/common/linear_template.h"
#include "kernels/cpu/avx512/dot_weights.h"
#include "kernels/cpu/avx512/kernels.h"

namespace halfbyte::kernels::cpu {

const LinearKernel kLinearBf16Bf16Avx512Bf16 = {"linear_bf16_bf16_avx512bf16",
                                                "avx512bf16",
                                                HasAvx512Bf16,
                                                LinearKind::kBf16,
                                                RowType::kBf16,
                                                kDotRowsAtOnce,
                                                &LinearRange<DotBf16>,
                                                &LinearRange<DotBf16>,
                                                nullptr,
                                                true};

}  // namespace halfbyte::kernels::cpu
