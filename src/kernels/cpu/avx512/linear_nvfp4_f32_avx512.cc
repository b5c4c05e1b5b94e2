// NVFP4 weights, FP32 arithmetic. Bytes: 0.5625 a weight.
// Generated rows: a block of 16 codes is summed alone, then scaled. Prompt rows: panels are decoded once (code * scale, exact)
// for all tiles.
#include "kernels/cpu/avx512/vec.h"
#include "kernels/cpu/common/math.h"
#include "kernels/cpu/common/linear_template.h"
#include "kernels/cpu/avx512/weights.h"
#include "kernels/cpu/common/decode_template.h"
#include "kernels/cpu/avx512/kernels.h"

namespace halfbyte::kernels::cpu {

const LinearKernel kLinearNvfp4F32Avx512 = {"linear_nvfp4_f32_avx512",
                                            "avx512",
                                            HasAvx512,
                                            LinearKind::kNvfp4,
                                            RowType::kF32,
                                            kRowsAtOnce,
                                            &DecodedRange<DecodeNvfp4, DecodedWeights>,
                                            &LinearRange<Nvfp4Weights>,
                                            &DecodedBytes<DecodedWeights>,
                                            false};

}  // namespace halfbyte::kernels::cpu
