// FP8 layers that a conversion leaves alone, in the words of compressed-tensors: their bytes stay, names and shapes of the scales change.
#pragma once

#include "quant/export_plan.h"

namespace halfbyte::quant {

// Renames in `plan` the copied scales of every module of plan.config.kept_quantized:
//   weight_scale_inv, scale  ->  weight_scale
//   per tensor [] -> [1], per channel [out] -> [out, 1], blocks [a, 1, b, 1] -> [a, b], MXFP8 scales F8_E8M0 -> U8, input_scale [] -> [1]
// What the dialect has no form for is an error that names the tensor: E5M2, power-of-two scales of 128 x 128 blocks in one byte or packed in words, and
// stacked experts.
base::Status RespellKeptFp8(const checkpoint::Checkpoint& files, ExportPlan& plan);

}  // namespace halfbyte::quant
