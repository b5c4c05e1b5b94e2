// Name rules: from a tensor's Hugging Face name to what it is. A family hands its names in as data.
//
// A name is stem + suffix. The stem ("model.layers.3.mlp.experts.7.gate_proj") says which matrix, the suffix (".weight",
// ".weight_scale_inv") which part of it; all parts of a matrix follow its stem, so that no scale can be lost by a rename.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace halfbyte::checkpoint {

enum class TensorRole : uint8_t {
  kEmbedding, kFinalNorm, kLmHead,
  kAttentionNorm, kFfnNorm,
  kQ, kK, kV, kO, kQNorm, kKNorm,
  kDenseGate, kDenseUp, kDenseDown,
  kRouter,
  kExpertGate, kExpertUp, kExpertDown,
  kExpertGateUp,  // all experts of a layer in one 3-D tensor, gate and up together (StackedLayout says how)
  kSharedGate, kSharedUp, kSharedDown, kSharedExpertGate,
};
std::string_view TensorRoleName(TensorRole role);  // "experts.gate", "attention.q", ...
bool IsExpertRole(TensorRole role);

// How a 3-D expert tensor lies in the file. Only the family can know it: shapes are ambiguous where 2F == D.
enum class StackedLayout : uint8_t {
  kPerExpert,          // not stacked: 2-D, one tensor an expert
  kRows,               // [E, out, in]; gate_up: gate rows first, then up rows (Qwen3.5)
  kTransposed,         // [E, in, out]; gate_up: gate columns first, then up columns (Qwen3-VL-MoE, Llama-4 style)
  kInterleavedRows,    // [E, out, in]; gate_up rows alternate gate, up
  kTransposedInterleaved,  // [E, in, out]; gate_up columns alternate gate, up (gpt-oss BF16)
};

// Which matrix: its role, its layer and expert where it has them (-1 otherwise).
struct TensorId {
  TensorRole role = TensorRole::kEmbedding;
  int32_t layer = -1;
  int32_t expert = -1;
  friend auto operator<=>(const TensorId&, const TensorId&) = default;
  std::string ToString() const;  // "layer 3, expert 7, experts.gate"
};

// Which part of the matrix a tensor is.
enum class TensorPart : uint8_t {
  kWeight, kBias,
  kWeightScale,        // weight_scale, weight_scale_inv, scale: block, row or tensor scales; a multiplier whatever its name
  kWeightScale2,       // ModelOpt NVFP4: FP32 multiplier over the block scales
  kWeightGlobalScale,  // compressed-tensors NVFP4: FP32 divisor
  kInputScale, kInputGlobalScale,
  kWeightPacked,       // compressed-tensors: packed codes in place of the weight
  kWeightShape, kPreQuantScale, kKScale, kVScale,
  kBlocks, kScales,    // gpt-oss MXFP4
};
std::string_view TensorPartName(TensorPart part);

// A tensor's name, taken apart by its ending alone: "mtp.fc.weight_scale" -> {"mtp.fc", kWeightScale}. A name without a known ending is all stem
// (stacked experts are stored so), its part kWeight.
struct SplitName {
  std::string_view stem;
  TensorPart part = TensorPart::kWeight;
};
SplitName SplitTensorName(std::string_view name);

// pattern: a stem with {L} for the layer and {E} for the expert number.
struct NameRule {
  std::string pattern;
  TensorRole role;
  StackedLayout layout = StackedLayout::kPerExpert;
};

// Names that are known and not loaded: MTP layers, vision towers, rotary tables.
struct SkippedName {
  std::string reason;
};
struct MatchedName {
  TensorId id;
  TensorPart part = TensorPart::kWeight;
  StackedLayout layout = StackedLayout::kPerExpert;
};
struct UnknownName {};
// A decoder layer that config.json does not count, neither as one of the model's nor as an MTP layer.
struct SurplusName {
  int32_t layer = 0;
};
using NameMatch = std::variant<UnknownName, SkippedName, MatchedName, SurplusName>;

class NameMap {
 public:
  // layers: decoder layers of the model proper. The mtp_layers that follow them are MTP layers and are skipped; a model cut short by a wrong
  // num_hidden_layers looks the same but for that number, so layers beyond both are never skipped.
  NameMap(std::vector<NameRule> rules, int64_t layers, int64_t mtp_layers = 0);

  NameMatch Match(std::string_view name) const;
  // How a tensor would be called, for messages: "model.layers.3.mlp.experts.7.gate_proj.weight".
  std::string ExampleName(const TensorId& id, TensorPart part) const;
  // The name without wrapper prefixes: "model.language_model.layers.0..." -> "model.layers.0...".
  static std::string StripWrappers(std::string_view name);

 private:
  std::optional<MatchedName> MatchRules(std::string_view stem, TensorPart part) const;

  std::vector<NameRule> rules_;
  int64_t layers_, mtp_layers_;
};

}  // namespace halfbyte::checkpoint
