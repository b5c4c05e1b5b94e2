#include "checkpoint/name_rules.h"

#include <array>
#include <charconv>
#include <optional>

#include "base/result.h"

namespace halfbyte::checkpoint {
namespace {

struct Suffix { std::string_view text; TensorPart part; };
// Longest first where one ends in another, so that ".weight_scale_2" is never taken for ".weight" plus rest.
constexpr std::array kSuffixes = {
    Suffix{".weight_global_scale", TensorPart::kWeightGlobalScale}, Suffix{".input_global_scale", TensorPart::kInputGlobalScale},
    Suffix{".weight_scale_inv", TensorPart::kWeightScale},          Suffix{"_weight_scale_inv", TensorPart::kWeightScale},
    Suffix{".weight_scale_2", TensorPart::kWeightScale2},           Suffix{"_weight_scale_2", TensorPart::kWeightScale2},
    Suffix{".weight_scale", TensorPart::kWeightScale},              Suffix{"_weight_scale", TensorPart::kWeightScale},
    Suffix{".weight_packed", TensorPart::kWeightPacked},            Suffix{".weight_shape", TensorPart::kWeightShape},
    Suffix{".pre_quant_scale", TensorPart::kPreQuantScale},         Suffix{".input_scale", TensorPart::kInputScale},
    Suffix{"_input_scale", TensorPart::kInputScale},                Suffix{".k_scale", TensorPart::kKScale},
    Suffix{".v_scale", TensorPart::kVScale},                        Suffix{"_blocks", TensorPart::kBlocks},
    Suffix{"_scales", TensorPart::kScales},                         Suffix{"_bias", TensorPart::kBias},
    Suffix{".weight", TensorPart::kWeight},                         Suffix{".bias", TensorPart::kBias},
    Suffix{".scale", TensorPart::kWeightScale},                     Suffix{"", TensorPart::kWeight},
};

std::optional<int32_t> TakeNumber(std::string_view& text) {
  int32_t value = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc() || end == text.data() || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

// Matches a whole stem against a pattern with {L} and {E}.
bool MatchStem(std::string_view pattern, std::string_view stem, TensorId& id) {
  while (!pattern.empty()) {
    if (pattern.front() == '{') {
      auto value = TakeNumber(stem);
      if (!value) return false;
      (pattern[1] == 'L' ? id.layer : id.expert) = *value;
      pattern.remove_prefix(3);
    } else {
      if (stem.empty() || stem.front() != pattern.front()) return false;
      stem.remove_prefix(1);
      pattern.remove_prefix(1);
    }
  }
  return stem.empty();
}

bool StartsWithAny(std::string_view name, std::initializer_list<std::string_view> prefixes) {
  for (std::string_view p : prefixes) if (name.starts_with(p)) return true;
  return false;
}

std::optional<int32_t> LayerOf(std::string_view name) {
  constexpr std::string_view kPrefix = "model.layers.";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  return TakeNumber(name);
}

}  // namespace

std::string_view TensorRoleName(TensorRole role) {
  switch (role) {
    case TensorRole::kEmbedding: return "embedding";
    case TensorRole::kFinalNorm: return "final norm";
    case TensorRole::kLmHead: return "lm_head";
    case TensorRole::kAttentionNorm: return "attention.norm";
    case TensorRole::kFfnNorm: return "ffn.norm";
    case TensorRole::kQ: return "attention.q";
    case TensorRole::kK: return "attention.k";
    case TensorRole::kV: return "attention.v";
    case TensorRole::kO: return "attention.o";
    case TensorRole::kQNorm: return "attention.q_norm";
    case TensorRole::kKNorm: return "attention.k_norm";
    case TensorRole::kDenseGate: return "mlp.gate";
    case TensorRole::kDenseUp: return "mlp.up";
    case TensorRole::kDenseDown: return "mlp.down";
    case TensorRole::kRouter: return "router";
    case TensorRole::kExpertGate: return "experts.gate";
    case TensorRole::kExpertUp: return "experts.up";
    case TensorRole::kExpertDown: return "experts.down";
    case TensorRole::kExpertGateUp: return "experts.gate_up";
    case TensorRole::kSharedGate: return "shared_expert.gate";
    case TensorRole::kSharedUp: return "shared_expert.up";
    case TensorRole::kSharedDown: return "shared_expert.down";
    case TensorRole::kSharedExpertGate: return "shared_expert_gate";
  }
  return "?";
}

bool IsExpertRole(TensorRole r) {
  return r == TensorRole::kExpertGate || r == TensorRole::kExpertUp || r == TensorRole::kExpertDown || r == TensorRole::kExpertGateUp;
}

std::string_view TensorPartName(TensorPart part) {
  switch (part) {
    case TensorPart::kWeight: return "weight";
    case TensorPart::kBias: return "bias";
    case TensorPart::kWeightScale: return "weight_scale";
    case TensorPart::kWeightScale2: return "weight_scale_2";
    case TensorPart::kWeightGlobalScale: return "weight_global_scale";
    case TensorPart::kInputScale: return "input_scale";
    case TensorPart::kInputGlobalScale: return "input_global_scale";
    case TensorPart::kWeightPacked: return "weight_packed";
    case TensorPart::kWeightShape: return "weight_shape";
    case TensorPart::kPreQuantScale: return "pre_quant_scale";
    case TensorPart::kKScale: return "k_scale";
    case TensorPart::kVScale: return "v_scale";
    case TensorPart::kBlocks: return "blocks";
    case TensorPart::kScales: return "scales";
  }
  return "?";
}

SplitName SplitTensorName(std::string_view name) {
  for (const Suffix& suffix : kSuffixes)
    if (name.ends_with(suffix.text)) return {name.substr(0, name.size() - suffix.text.size()), suffix.part};
  return {name, TensorPart::kWeight};
}

std::string TensorId::ToString() const {
  std::string out;
  if (layer >= 0) out += base::StrCat("layer ", layer, ", ");
  if (expert >= 0) out += base::StrCat("expert ", expert, ", ");
  return out + std::string(TensorRoleName(role));
}

NameMap::NameMap(std::vector<NameRule> rules, int64_t layers, int64_t mtp_layers) : rules_(std::move(rules)), layers_(layers), mtp_layers_(mtp_layers) {}

std::string NameMap::ExampleName(const TensorId& id, TensorPart part) const {
  for (const NameRule& rule : rules_) {
    if (rule.role != id.role) continue;
    std::string name;
    for (size_t i = 0; i < rule.pattern.size(); ++i) {
      if (rule.pattern[i] != '{') { name += rule.pattern[i]; continue; }
      name += std::to_string(rule.pattern[i + 1] == 'L' ? id.layer : id.expert);
      i += 2;
    }
    return base::StrCat(name, ".", TensorPartName(part));
  }
  return id.ToString();
}

std::string NameMap::StripWrappers(std::string_view name) {
  if (name.starts_with("model.language_model.")) return base::StrCat("model.", name.substr(21));
  if (name.starts_with("language_model.model.")) return std::string(name.substr(15));
  if (name.starts_with("language_model.lm_head")) return std::string(name.substr(15));
  return std::string(name);
}

std::optional<MatchedName> NameMap::MatchRules(std::string_view stem, TensorPart part) const {
  for (const NameRule& rule : rules_) {
    MatchedName m{TensorId{rule.role, -1, -1}, part, rule.layout};
    if (MatchStem(rule.pattern, stem, m.id)) return m;
  }
  return std::nullopt;
}

NameMatch NameMap::Match(std::string_view raw) const {
  const std::string name = StripWrappers(raw);
  if (StartsWithAny(name, {"model.visual.", "visual.", "vision_tower.", "mm_projector.", "multi_modal_projector."})) return SkippedName{"vision"};
  if (std::string_view(name).ends_with(".rotary_emb.inv_freq")) return SkippedName{"rotary table"};
  if (name.starts_with("mtp.")) return SkippedName{"MTP layer"};
  if (auto layer = LayerOf(name); layer && *layer >= layers_) {
    if (*layer < layers_ + mtp_layers_) return SkippedName{"MTP layer"};
    return SurplusName{*layer};
  }
  for (const Suffix& suffix : kSuffixes) {
    if (!std::string_view(name).ends_with(suffix.text)) continue;
    const std::string_view stem = std::string_view(name).substr(0, name.size() - suffix.text.size());
    if (auto m = MatchRules(stem, suffix.part)) return *m;
    // compressed-tensors hangs KV scales on the attention module ("self_attn.k_scale"), ModelOpt on its projections ("self_attn.k_proj.k_scale").
    if (suffix.part == TensorPart::kKScale || suffix.part == TensorPart::kVScale)
      if (auto m = MatchRules(base::StrCat(stem, suffix.part == TensorPart::kKScale ? ".k_proj" : ".v_proj"), suffix.part)) return *m;
  }
  return UnknownName{};
}

}  // namespace halfbyte::checkpoint
