// The list of backends: by name, and what `auto` means.
#pragma once

#include "kernels/api/backend.h"

namespace halfbyte::kernels {

// device: auto, cpu, cuda, cuda:N, reference. `auto` is cpu until CUDA kernels exist. A backend that this build or machine lacks is an error that says why.
base::Result<std::unique_ptr<Backend>> CreateBackend(std::string_view device, const BackendOptions& options);

}  // namespace halfbyte::kernels
