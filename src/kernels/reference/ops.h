// The operations, one .cc file a group. Contracts: kernels/api/ops.h.
#pragma once

#include "kernels/api/ops.h"

namespace halfbyte::kernels::reference {

void RunEmbed(const EmbedOp& op);            // linear.cc
void RunLinear(const LinearOp& op);          // linear.cc
void RunMoe(const MoeOp& op);                // experts.cc
void RunRoute(const RouteOp& op);            // router.cc
void RunRmsNorm(const RmsNormOp& op);        // norm_rope.cc
void RunQkv(const QkvOp& op);                // norm_rope.cc
void RunAttention(const AttentionOp& op);    // attention.cc
void RunSiluMul(const SiluMulOp& op);        // elementwise.cc
void RunAddGated(const AddGatedOp& op);      // elementwise.cc
void RunGatherRows(const GatherRowsOp& op);  // elementwise.cc

}  // namespace halfbyte::kernels::reference
