// The `reference` backend: plain loops over src/numerics, obviously right, never optimized. The oracle of every differential test, and
// usable as `--device reference`. All weight formats, all activation forms, exact and rounded (the ops' dtypes say which).
//
// Everything between two rounding points is FP64 (rows.h says why), so the two row classes are one and the same here.
#pragma once

#include <memory>

#include "kernels/api/backend.h"

namespace halfbyte::kernels {

// options.threads sets the process's pool where it is not 0; options.kernels has no effect, there is one kernel for each op.
std::unique_ptr<Backend> CreateReferenceBackend(const BackendOptions& options);

}  // namespace halfbyte::kernels
