// The kernels of this folder, one line for each; table.cc lists them.
#pragma once

#include "kernels/cpu/common/kernel_table.h"

namespace halfbyte::kernels::cpu {

// Out of line, so that a kernel's file does not instantiate an inline function of everybody's with its own instruction set.
bool HasAvx2(const platform::CpuFeatures& f);

extern const LinearKernel kLinearF32F32Avx2, kLinearBf16F32Avx2, kLinearFp8F32Avx2, kLinearNvfp4F32Avx2;
extern const RowKernels kRowsAvx2;
extern const AttentionKernel kAttentionF32Avx2;

}  // namespace halfbyte::kernels::cpu
