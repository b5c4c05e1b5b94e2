// The steps of moe.h.
#pragma once

#include "kernels/api/ops.h"

namespace halfbyte::kernels::cpu::moe {

void Run(const MoeOp& op);

}  // namespace halfbyte::kernels::cpu::moe
