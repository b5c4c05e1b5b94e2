#include "kernels/cpu/avx2/kernels.h"

namespace halfbyte::kernels::cpu {

bool HasAvx2(const platform::CpuFeatures& f) { return f.HasAvx2(); }

// Later entries are preferred.
std::span<const LinearKernel* const> Avx2Linear() {
  static const LinearKernel* const kTable[] = {&kLinearF32F32Avx2, &kLinearBf16F32Avx2, &kLinearFp8F32Avx2, &kLinearNvfp4F32Avx2};
  return kTable;
}

std::span<const RowKernels* const> Avx2Rows() {
  static const RowKernels* const kTable[] = {&kRowsAvx2};
  return kTable;
}

std::span<const AttentionKernel* const> Avx2Attention() {
  static const AttentionKernel* const kTable[] = {&kAttentionF32Avx2};
  return kTable;
}

}  // namespace halfbyte::kernels::cpu
