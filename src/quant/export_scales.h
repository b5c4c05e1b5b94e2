// The FP32 scalars of an exported checkpoint that no conversion makes: activation scales, and the scales of matrices that were NVFP4 before.
#pragma once

#include "quant/export_plan.h"

namespace halfbyte::quant {

struct ExportedScalar {
  std::string name;
  float value = 0;
};

// Activation scales (none where the plan is weight-only) of each written matrix, the first of these that there is:
//   a measured one; the source's own; the largest of the same GEMM's in that layer (experts that a calibration never reached: warned about);
//   1.0, ModelOpt's recipe without calibration. Gate and up of a converted expert get one value, and so do all experts of a layer.
// A scale that is not positive and finite is an error that names the tensor.
base::Result<std::vector<ExportedScalar>> ExportScalars(const checkpoint::Checkpoint& files, const ExportPlan& plan, std::vector<std::string>& warnings);

}  // namespace halfbyte::quant
