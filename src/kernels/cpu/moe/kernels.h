// The kernels that this build has, and which of them a layer uses.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/api/backend.h"
#include "kernels/cpu/moe/kernel.h"

namespace halfbyte::kernels::cpu::moe {

// What enters a GEMM, as the choice of a kernel sees it.
enum class RowClass : uint8_t { kBf16, kF32, kInt8, kNvfp4 };
inline constexpr int kRowClasses = 4;

struct KernelSet {
  // [prompt][weight][rows]; null where the pair does not occur.
  const MoeKernel* gemm[2][kWeightKinds][kRowClasses] = {};
  MoeSteps steps = {};

  const MoeKernel* For(WeightKind weight, RowClass rows, bool prompt) const {
    return gemm[prompt ? 1 : 0][static_cast<int>(weight)][static_cast<int>(rows)];
  }
};

// All that this machine can run.
std::vector<const MoeKernel*> AvailableKernels();

// options.kernels: ("moe_gemm", kernel name or instruction set), see moe.h.
base::Result<KernelSet> ChooseKernels(const BackendOptions& options);

}  // namespace halfbyte::kernels::cpu::moe
