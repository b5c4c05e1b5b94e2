#include "kernels/cpu/amx/kernels.h"

namespace halfbyte::kernels::cpu {

bool HasAmxBf16(const platform::CpuFeatures& f) { return f.HasAmxBf16(); }

std::span<const LinearKernel* const> AmxLinear() {
  static const LinearKernel* const kTable[] = {&kLinearBf16Bf16Amx};
  return kTable;
}

}  // namespace halfbyte::kernels::cpu
