// FP8 weights (E4M3 with a scale a block, row or tensor), FP32 arithmetic. Bytes: 1 a weight.
// Generated rows: the columns of each scale are summed alone, then scaled. Prompt rows: panels are decoded once (code * scale,
// rounded once) for all tiles.
#include "kernels/cpu/avx2/vec.h"
#include "kernels/cpu/common/math.h"
#include "kernels/cpu/common/linear_template.h"
#include "kernels/cpu/avx2/weights.h"
#include "kernels/cpu/common/decode_template.h"
#include "kernels/cpu/avx2/kernels.h"

namespace halfbyte::kernels::cpu {

const LinearKernel kLinearFp8F32Avx2 = {"linear_fp8_f32_avx2",
                                        "avx2",
                                        HasAvx2,
                                        LinearKind::kFp8,
                                        RowType::kF32,
                                        kRowsAtOnce,
                                        &DecodedRange<DecodeFp8, DecodedWeights>,
                                        &LinearRange<Fp8Weights>,
                                        &DecodedBytes<DecodedWeights>,
                                        false};

}  // namespace halfbyte::kernels::cpu
