// The kernels of this folder, one line for each; table.cc lists them.
#pragma once

#include "kernels/cpu/common/kernel_table.h"

namespace halfbyte::kernels::cpu {

// Out of line, as in avx512/kernels.h.
bool HasAmxBf16(const platform::CpuFeatures& f);

extern const LinearKernel kLinearBf16Bf16Amx;

}  // namespace halfbyte::kernels::cpu
