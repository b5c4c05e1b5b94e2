// What a checkpoint's configuration says about its quantization, in every dialect, as one struct.
//
//   dialect              where                                            says
//   fp8                  quantization_config {quant_method "fp8"}          weight_block_size, modules_to_not_convert; also moe_quant_algo (hybrid)
//   modelopt             quantization_config {quant_method "modelopt*"}    quant_algo, config_groups, ignore, kv_cache_scheme, quantized_layers
//                        hf_quant_config.json {"quantization": {...}}      quant_algo, exclude_modules, kv_cache_quant_algo, group_size, quantized_layers
//   compressed-tensors   quantization_config {quant_method}                format, config_groups, ignore, kv_cache_scheme
//   mxfp4, mxfp8         quantization_config {quant_method}                modules_to_not_convert
//
// This is a label and nothing more. What a module is, its tensors decide (a U8 weight with a weight_scale is NVFP4 whatever the label
// says); the label settles what tensors cannot say: block sizes, whether activations were meant to be quantized, what was left out on purpose.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace halfbyte::checkpoint {

enum class QuantDialect { kNone, kFp8, kModelOpt, kCompressedTensors, kMxfp4, kMxfp8 };
std::string_view QuantDialectName(QuantDialect dialect);  // "none", "fp8", "modelopt", "compressed-tensors", "mxfp4", "mxfp8"

// What the weights of a layer are.
enum class QuantAlgo {
  kNone,        // plain floats
  kFp8Tensor,   // one scale, or as many as the scale tensor has: the shape decides between tensor and channel
  kFp8Channel,  // one scale a row
  kFp8Block,    // one scale a block_rows x block_cols patch
  kMxfp8,       // FP8 with an E8M0 scale for 32 values
  kNvfp4,
  kMxfp4,
  kOther,       // known or unknown, and not read: INT4, AWQ, ...; `label` says which
};
std::string_view QuantAlgoName(QuantAlgo algo);

struct LayerQuant {
  QuantAlgo algo = QuantAlgo::kNone;
  std::string label;                // as the file calls it: "W4A16_NVFP4", "nvfp4-pack-quantized", ...
  int group_size = 0;               // values a block scale of NVFP4, MXFP4, MXFP8; 0 where the algorithm has none
  std::array<int64_t, 2> block{};   // rows, columns of an FP8 block; {0, 0} elsewhere
  bool weight_only = false;         // activations are not meant to be quantized (W4A16, input_activations null)
  int activation_bits = 0;          // of the quantized activations; 0 where none or not said
  bool pre_quant_scale = false;     // NVFP4_AWQ: activations are multiplied by a pre_quant_scale tensor first
  bool static_activations = false;  // of a checkpoint that is written: the file holds an activation scale
  friend bool operator==(const LayerQuant&, const LayerQuant&) = default;
};

enum class KvCacheAlgo { kNone, kFp8, kNvfp4 };

// A config group of compressed-tensors (or of ModelOpt's flat form): what it applies to.
struct QuantGroup {
  std::vector<std::string> targets;  // class names ("Linear"), module paths, "re:..." patterns
  LayerQuant quant;
};

struct QuantMetadata {
  QuantDialect dialect = QuantDialect::kNone;
  std::string origin;            // "config.json quantization_config", "hf_quant_config.json"; empty for none
  std::string producer;          // "modelopt 0.47.0"; empty where not said

  LayerQuant main;               // of every layer that nothing below names; kNone with label MIXED_PRECISION for per-layer files
  std::optional<LayerQuant> experts;  // hybrid files: the routed experts' own (moe_quant_algo)
  std::vector<QuantGroup> groups;     // where there is more than one, or one that does not target the class Linear
  std::vector<std::pair<std::string, LayerQuant>> layers;  // quantized_layers: module path without wrapper prefixes -> its quantization, sorted
  KvCacheAlgo kv_cache = KvCacheAlgo::kNone;
  bool scales_are_powers_of_two = false;  // scale_fmt "ue8m0"

  std::vector<std::string> excludes;  // patterns as written
  std::string excludes_origin;        // "config.json ignore", "hf_quant_config.json exclude_modules", ...

  std::vector<std::string> warnings;  // complete sentences without a final dot

  // The entry of `layers` for a module: its own (with and without wrapper prefixes), else the first below it; null where there is none.
  const LayerQuant* FindLayer(std::string_view module) const;
  // Rows and columns of an FP8 block: those of `main`, else of the first layer or group that has any. One file has one block size.
  std::optional<std::array<int64_t, 2>> Fp8Block() const;
};

// config: config.json; the section may also stand in its text_config. hf_quant_config: ModelOpt's file, null (or a null Json) where absent.
// Both say something: the section in config.json wins, a disagreement is one warning, and what the section does not mention (KV cache,
// quantized_layers, excludes) is taken from the file. An unknown quant_method is kUnsupported, a key of a wrong type kBadFile.
base::Result<QuantMetadata> ReadQuantMetadata(const base::Json& config, const base::Json* hf_quant_config);

}  // namespace halfbyte::checkpoint
