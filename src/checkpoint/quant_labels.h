// The words of the quantization dialects; internal to checkpoint.
#pragma once

#include "base/json.h"
#include "checkpoint/quant_metadata.h"

namespace halfbyte::checkpoint::internal {

// One reading of a section, with what it left unsaid.
struct QuantSection {
  QuantMetadata metadata;
  bool says_kv_cache = false, says_excludes = false;
};

// "NVFP4", "W4A16_NVFP4", "FP8_PB_WO", ... in any case; an unknown word is kOther with the word as label.
LayerQuant FromModelOptAlgo(std::string_view algo);
// A config group's "weights" and "input_activations".
base::Result<LayerQuant> FromConfigGroup(const base::Json& group, std::string_view format);

base::Result<QuantSection> ReadInlineSection(const base::Json& section);      // config.json's quantization_config
base::Result<QuantSection> ReadModelOptFile(const base::Json& file);          // hf_quant_config.json

}  // namespace halfbyte::checkpoint::internal
