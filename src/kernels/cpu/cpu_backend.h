// The `cpu` backend: packed weights, kernels for AVX2 and AVX-512 chosen when it is made, every format, exact and rounded.
#pragma once

#include <memory>

#include "kernels/api/backend.h"

namespace halfbyte::kernels {

// options.threads sets the process's pool where it is not 0. options.kernels: ("linear" | "attention" | "rows" | "moe_gemm",
// name), see cpu/kernel_choice.h and cpu/moe/moe.h. kUnsupported on processors below AVX2, kInvalidArgument for a name that is
// not there.
base::Result<std::unique_ptr<Backend>> CreateCpuBackend(const BackendOptions& options);

}  // namespace halfbyte::kernels
