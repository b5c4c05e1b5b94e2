// The configuration that goes with a checkpoint we quantized to NVFP4: ModelOpt's two files, or the section of compressed-tensors.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "checkpoint/quant_metadata.h"

namespace halfbyte::checkpoint {

struct WrittenQuant {
  bool weight_only = false;  // W4A16: no input scales were written
  int group_size = 16;
  bool pre_quant_scale = false;  // AWQ factors were carried over: NVFP4_AWQ
  std::vector<std::string> quantized;  // module paths that are NVFP4 now, expert by expert
  // Module paths with a weight matrix that stayed as it was; lm_head and the embedding among them, also where lm_head is tied and has no tensor.
  std::vector<std::string> kept;
  // Those of `kept` that are quantized in another way (FP8 of the source): the file becomes a MIXED_PRECISION one, as ModelOpt calls it.
  std::vector<std::pair<std::string, LayerQuant>> kept_quantized;
  KvCacheAlgo kv_cache = KvCacheAlgo::kNone;  // of k_scale and v_scale tensors carried over
  std::string version;                        // of this program
  // How the conversion was done ("contract" = "modelopt", "scale_search" = "4over6", ...), recorded with the producer.
  std::vector<std::pair<std::string, std::string>> settings;
};

struct ModelOptConfig {
  base::Json quantization_config;  // for config.json
  base::Json hf_quant_config;      // the file of that name; says the same
  std::vector<std::string> warnings;
};
// Both always, because TensorRT-LLM reads the file and vLLM and SGLang read the section; `group_size` also at the section's top level, where vLLM looks for it.
ModelOptConfig MakeModelOptConfig(const WrittenQuant& written);

// The section for config.json: `nvfp4-pack-quantized`, W4A4 or W4A16; `mixed-precision` with a group for each FP8 format where layers stay FP8.
base::Json MakeCompressedTensorsConfig(const WrittenQuant& written);

// The source's config.json with `section` as its quantization_config in place of whatever it had (also inside text_config).
base::Json WithQuantizationConfig(base::Json config, base::Json section);

// JSON of configuration files: two spaces, a newline at the end; infinity is written as transformers 5 does.
std::string ConfigText(const base::Json& config);

}  // namespace halfbyte::checkpoint
