// The ops' drivers, one .cc file a group: they cut the work for the threads and call kernels. Contracts: kernels/api/ops.h.
#pragma once

#include <vector>

#include "kernels/api/ops.h"
#include "kernels/cpu/kernel_choice.h"
#include "kernels/cpu/scratch.h"

namespace halfbyte::kernels::cpu {

void RunLinear(const LinearOp& op, const KernelChoice& kernels, Scratch& scratch);        // linear.cc
void RunAttention(const AttentionOp& op, const KernelChoice& kernels, Scratch& scratch);  // attention.cc

// cos and sin for the rows of a step: layers share positions, so that the first layer's work serves all of them.
class RopeCache {
 public:
  // [rows][2][dims/2]: cos, then sin, both times rope.scale.
  const float* Get(const RopeSpec& rope, const Batch& batch);

 private:
  struct Entry {
    std::vector<float> key;  // scale, inv_freq
    std::vector<int64_t> positions;
    std::vector<float> table;
  };
  // A model alternates between two ropes at most (local and global attention).
  Entry entries_[2];
  int next_ = 0;
};
void RunQkv(const QkvOp& op, const KernelChoice& kernels, RopeCache& ropes);  // qkv.cc

void RunEmbed(const EmbedOp& op, const KernelChoice& kernels);  // rows.cc
void RunRmsNorm(const RmsNormOp& op, const KernelChoice& kernels);
void RunSiluMul(const SiluMulOp& op, const KernelChoice& kernels);
void RunAddGated(const AddGatedOp& op, const KernelChoice& kernels);
void RunGatherRows(const GatherRowsOp& op);
void RunRoute(const RouteOp& op);  // route.cc

}  // namespace halfbyte::kernels::cpu
