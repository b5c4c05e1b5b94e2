// The `cpu` backend: packed weights, kernels for AVX2 and AVX-512 chosen when it is made, every format, exact and rounded.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/api/backend.h"

namespace halfbyte::kernels {

// options.threads sets the process's pool where it is not 0. options.kernels: ("linear" | "attention" | "rows" | "moe_gemm",
// name), see cpu/kernel_choice.h and cpu/moe/moe.h. kUnsupported on processors below AVX2, kInvalidArgument for a name that is
// not there.
base::Result<std::unique_ptr<Backend>> CreateCpuBackend(const BackendOptions& options);

// A kernel of the tables and what it serves, for those who try each of them (bench --kernels).
struct CpuKernel {
  std::string op;  // "moe_gemm", "linear", "attention"
  std::string name;
  Format weight;                                          // that it reads; attention: of the cache
  ActivationForm activations = ActivationForm::kPlain;    // moe_gemm: of the rows
  DType rows = DType::kBF16;                              // the narrowest rows that it serves: F32 where only exact calls use it
  bool rounds = false;                                    // attention: rounds the softmax weights to BF16
};
// All that this machine can run, those of an op together.
std::vector<CpuKernel> CpuKernels();

}  // namespace halfbyte::kernels
