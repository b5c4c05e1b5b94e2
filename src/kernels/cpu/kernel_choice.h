// Which kernel serves what, decided once when the backend is made.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernels/api/backend.h"
#include "kernels/cpu/common/kernel_table.h"
#include "kernels/cpu/cpu_backend.h"

namespace halfbyte::kernels::cpu {

struct KernelChoice {
  // [prompt][kind][x is BF16]: BF16 rows may be served by an F32 kernel, never the other way round.
  const LinearKernel* linear[2][kLinearKinds][2] = {};
  const RowKernels* rows = nullptr;
  const AttentionKernel* attention = nullptr;  // rounded calls
  const AttentionKernel* attention_exact = nullptr;

  std::vector<std::pair<std::string, std::string>> Names() const;
};

// The newest that the machine can run, unless `options.kernels` says otherwise: ("linear" | "rows" | "attention", name), where
// name is a kernel's (replaces the choice for what that kernel serves) or a machine's ("avx2", "avx512": that one's kernels
// wherever it has them). kInvalidArgument lists the names; kUnsupported below AVX2.
base::Result<KernelChoice> ChooseKernels(const BackendOptions& options, const platform::CpuFeatures& cpu);

// See cpu_backend.h; row kernels are left out.
std::vector<CpuKernel> UsableDenseKernels(const platform::CpuFeatures& cpu);

}  // namespace halfbyte::kernels::cpu
