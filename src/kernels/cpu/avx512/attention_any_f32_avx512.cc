// Attention in FP32 over a cache of any type: the exact form, and the rounded one where there are no BF16 dot products at full
// rate. Decode: K and V of a KV head are read once for all query heads of its group. Prefill: 12 query vectors at a time against
// chunks in the L1 and L2 caches.
#include "kernels/cpu/avx512/vec.h"
#include "kernels/cpu/common/math.h"
#include "kernels/cpu/common/linear_template.h"
#include "kernels/cpu/avx512/weights.h"
#include "kernels/cpu/common/attention_template.h"
#include "kernels/cpu/avx512/kernels.h"

namespace halfbyte::kernels::cpu {
namespace {

void Partial(const AttentionCall& c) {
  if (c.kv.spec.dtype == tensor::DType::kF32) AttentionOver<F32Weights>(c);
  else AttentionOver<Bf16Weights>(c);
}

int64_t ScratchBytes(int64_t head_dim) { return AttentionScratchBytes<F32Weights>(head_dim); }

}  // namespace

const AttentionKernel kAttentionF32Avx512 = {
    "attention_any_f32_avx512", "avx512", HasAvx512, false, false, &Partial, &ScratchBytes, &FoldPartials};

}  // namespace halfbyte::kernels::cpu
