// Attention of BF16 queries over a BF16 or FP8 cache with vdpbf16ps; the softmax weights are rounded to BF16 for P V, their sum
// is not.
#include "kernels/cpu/avx512/vec.h"
#include "kernels/cpu/common/math.h"
#include "kernels/cpu/common/linear_template.h"
#include "kernels/cpu/avx512/dot_weights.h"
#include "kernels/cpu/common/attention_template.h"
#include "kernels/cpu/avx512/kernels.h"

namespace halfbyte::kernels::cpu {
namespace {

int64_t ScratchBytes(int64_t head_dim) { return AttentionScratchBytes<DotBf16>(head_dim); }

}  // namespace

const AttentionKernel kAttentionBf16Avx512Bf16 = {"attention_bf16_bf16_avx512bf16", "avx512bf16",  HasAvx512Bf16, true, true,
                                                  &AttentionOver<DotBf16>,          &ScratchBytes, &FoldPartials};

}  // namespace halfbyte::kernels::cpu
