#include "kernels/cpu/avx512/kernels.h"

namespace halfbyte::kernels::cpu {

bool HasAvx512(const platform::CpuFeatures& f) { return f.HasAvx512(); }
bool HasAvx512Bf16(const platform::CpuFeatures& f) { return f.HasAvx512Bf16(); }

// Later entries are preferred.
std::span<const LinearKernel* const> Avx512Linear() {
  static const LinearKernel* const kTable[] = {&kLinearF32F32Avx512,       &kLinearBf16F32Avx512,      &kLinearFp8F32Avx512,
                                               &kLinearNvfp4F32Avx512,     &kLinearBf16Bf16Avx512Bf16, &kLinearFp8Bf16Avx512Bf16,
                                               &kLinearNvfp4Bf16Avx512Bf16};
  return kTable;
}

std::span<const RowKernels* const> Avx512Rows() {
  static const RowKernels* const kTable[] = {&kRowsAvx512};
  return kTable;
}

std::span<const AttentionKernel* const> Avx512Attention() {
  static const AttentionKernel* const kTable[] = {&kAttentionF32Avx512, &kAttentionBf16Avx512Bf16};
  return kTable;
}

}  // namespace halfbyte::kernels::cpu
