// Attention in FP32 over a cache of any type: the exact form, and the rounded one where there are no BF16 dot products.
#include "kernels/cpu/avx2/vec.h"
#include "kernels/cpu/common/math.h"
#include "kernels/cpu/common/attention_template.h"
#include "kernels/cpu/avx2/kernels.h"

namespace halfbyte::kernels::cpu {
namespace {

struct Shape { static constexpr int kRows = 6, kPanels = 1; };

}  // namespace

const AttentionKernel kAttentionF32Avx2 = {"attention_any_f32_avx2", "avx2", HasAvx2, false, &AttentionPartial<Shape>, &AttentionScratch, &FoldPartials};

}  // namespace halfbyte::kernels::cpu
