// Measuring activation scales for `quantize --calibrate`: documents run through the source model, the largest inputs of its experts are kept.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "commands.h"
#include "quant/export_plan.h"

namespace halfbyte::app {

struct Calibration {
  std::map<int32_t, quant::LayerInputScales> scales;  // by layer
  std::vector<std::string> remarks;                   // experts that no token reached
  int64_t tokens = 0;
};

// file: {"text"} a line. Scales are amax / 2688, with PyTorch's arithmetic of `flavour`; all experts of a layer share them, reached or not.
base::Result<Calibration> Calibrate(const std::filesystem::path& folder, const std::string& file, int threads, numerics::Flavour flavour, const Context& context);

}  // namespace halfbyte::app
