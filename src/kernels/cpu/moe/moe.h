// The routed experts of a layer on the CPU: what the `cpu` backend calls.
//
// One grouped operation a layer. Routed rows are sorted by expert; prompt rows and generated rows of one expert are two groups. Then
//   x rows -> the kernel's row format (as they are, INT8, NVFP4)             once a token, shared by its experts
//   GEMM1 on (group, tile of 16 columns of F), SwiGLU on the tile            gate and up tiles of one column range lie side by side
//   h rows -> the row format of the down matrix
//   GEMM2 on (group, tile of 32 columns of D)
//   out[t] += sum over slots s = 0..k-1 of weights[t, s] * y[t, s]           in this order, by one thread a row
// Items are pulled from one counter, largest groups first, so that skewed routing fills the cores and one token's experts are split
// by columns. Experts without rows cost nothing.
//
// Bits: within a row class an output's order of summation depends on the inner length alone, because a kernel handles each row of a
// block by the same instructions whatever the block's height. Threads and neighbours only change who computes which tile.
//
// Static activation scales (kNvfp4Static): x is quantized with the largest input_scale that was set for the layer's gate and up matrices,
// h with the largest of its down matrices (reference-behaviour 2.1, the CUTLASS and TRTLLM rows), and the products are scaled accordingly.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_backend.h"

namespace halfbyte::kernels::cpu {

// kUnsupported where a format has no kernel here, or where gate and up of one expert differ in being NVFP4.
base::Status SupportsMoe(const ExpertsSpec& spec);

// Bytes of the packed object, padding included. The spec must be supported.
int64_t MoeBytes(const ExpertsSpec& spec);

// options.kernels may hold ("moe_gemm", name), several times; name is a kernel of MoeKernels() or an instruction set ("avx2",
// "avx512", "avx512vnni", "avx512bf16", "amx"), which forbids everything newer. kInvalidArgument lists the names this machine can run.
base::Result<std::unique_ptr<ExpertsWeight>> CreateMoe(ExpertsSpec spec, const BackendOptions& options);

// Thread-safe for distinct (expert, part).
base::Status PackMoe(ExpertsWeight& weight, int64_t expert, ExpertPart part, const QuantizedMatrix& matrix);

// See Backend::SetInputScale. Not thread-safe against RunMoe, but for distinct (expert, part).
base::Status SetMoeInputScale(ExpertsWeight& weight, int64_t expert, ExpertPart part, float input_scale);

void RunMoe(const MoeOp& op);

// See cpu_backend.h.
std::vector<CpuKernel> UsableMoeKernels();

// {"moe_gemm", name} for each kernel that `options` choose, for the log: one for each pair of weight and row format.
base::Result<std::vector<std::pair<std::string, std::string>>> MoeKernels(const BackendOptions& options);

}  // namespace halfbyte::kernels::cpu
