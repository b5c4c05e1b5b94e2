// Attention in FP32 over a cache of any type: the exact form, and the rounded one where there are no BF16 dot products.
#include "kernels/cpu/avx512/vec.h"
#include "kernels/cpu/common/math.h"
#include "kernels/cpu/common/attention_template.h"
#include "kernels/cpu/avx512/kernels.h"

namespace halfbyte::kernels::cpu {
namespace {

struct Shape { static constexpr int kRows = 8, kPanels = 2; };

}  // namespace

const AttentionKernel kAttentionF32Avx512 = {"attention_any_f32_avx512", "avx512", HasAvx512, false, &AttentionPartial<Shape>, &AttentionScratch, &FoldPartials};

}  // namespace halfbyte::kernels::cpu
