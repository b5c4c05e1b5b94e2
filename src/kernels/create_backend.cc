#include "kernels/create_backend.h"

#include "kernels/api/weight_quantizer.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_backend.h"

namespace halfbyte::kernels {

base::Result<std::unique_ptr<Backend>> CreateBackend(std::string_view device, const BackendOptions& options) {
  if (device == "auto" || device == "cpu") return CreateCpuBackend(options);
  if (device == "reference") {
    for (const auto& [op, name] : options.kernels)
      if (op != "quantize") return base::Fail(base::ErrorCode::kInvalidArgument, op, "=", name, ": reference has one kernel an op; only the loader's can be chosen, quantize");
    HB_RETURN_IF_ERROR(ChooseWeightQuantizer(options.kernels));
    return CreateReferenceBackend(options);
  }
  if (device == "cuda" || device.starts_with("cuda:"))
    return base::Fail(base::Error(base::ErrorCode::kUnsupported, "this build has no CUDA backend").Hint("use --device cpu"));
  return base::Fail(base::ErrorCode::kInvalidArgument, "device \"", device, "\" is none of auto, cpu, cuda, cuda:N, reference");
}

}  // namespace halfbyte::kernels
