// The kernels of this folder, one line for each; table.cc lists them.
#pragma once

#include "kernels/cpu/common/kernel_table.h"

namespace halfbyte::kernels::cpu {

// Out of line, so that a kernel's file does not instantiate an inline function of everybody's with its own instruction set.
bool HasAvx512(const platform::CpuFeatures& f);
bool HasAvx512Bf16(const platform::CpuFeatures& f);

extern const LinearKernel kLinearF32F32Avx512, kLinearBf16F32Avx512, kLinearFp8F32Avx512, kLinearNvfp4F32Avx512;
extern const LinearKernel kLinearBf16Bf16Avx512Bf16, kLinearFp8Bf16Avx512Bf16, kLinearNvfp4Bf16Avx512Bf16;
extern const RowKernels kRowsAvx512;
extern const AttentionKernel kAttentionF32Avx512, kAttentionBf16Avx512Bf16;

}  // namespace halfbyte::kernels::cpu
