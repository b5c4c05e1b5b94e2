#include "quant/label_check.h"

#include <algorithm>
#include <tuple>

#include "quant/layer_selection.h"

namespace halfbyte::quant {
namespace {

using checkpoint::LayerQuant;
using checkpoint::QuantAlgo;
using checkpoint::QuantMetadata;

enum class Family : uint8_t { kPlain, kFp8, kNvfp4, kMxfp4, kUnknown };

Family FamilyOf(QuantAlgo algo) {
  switch (algo) {
    case QuantAlgo::kNone: return Family::kPlain;
    case QuantAlgo::kFp8Tensor: case QuantAlgo::kFp8Channel: case QuantAlgo::kFp8Block: case QuantAlgo::kMxfp8: return Family::kFp8;
    case QuantAlgo::kNvfp4: return Family::kNvfp4;
    case QuantAlgo::kMxfp4: return Family::kMxfp4;
    case QuantAlgo::kOther: return Family::kUnknown;
  }
  return Family::kUnknown;
}
Family FamilyOf(const Format& f) {
  if (f.is_plain()) return Family::kPlain;
  if (f.is_fp8()) return Family::kFp8;
  return f.is_nvfp4() ? Family::kNvfp4 : Family::kMxfp4;
}

bool IsLabelled(TensorRole role) {
  switch (role) {
    case TensorRole::kEmbedding: case TensorRole::kLmHead: case TensorRole::kRouter: case TensorRole::kSharedExpertGate: return false;
    default: return true;
  }
}

// The label of a module, with the exclude list applied.
class Labels {
 public:
  static base::Result<Labels> Make(const QuantMetadata& metadata) {
    Labels labels(metadata);
    HB_ASSIGN_OR_RETURN(labels.excluded_, LayerSelection::Make(metadata.excludes, metadata.excludes_origin, PatternSyntax::kPatterns));
    for (const checkpoint::QuantGroup& group : metadata.groups) {
      std::vector<std::string> targets;
      for (const std::string& t : group.targets) if (t != "Linear") targets.push_back(t);
      HB_ASSIGN_OR_RETURN(LayerSelection selection, LayerSelection::Make(targets, "config_groups targets", PatternSyntax::kPatterns));
      labels.groups_.emplace_back(std::move(selection), &group.quant);
    }
    return labels;
  }

  LayerQuant Of(const std::string& module, TensorRole role) const {
    if (excluded_.Contains(module)) return {};
    if (!metadata_->layers.empty()) {
      const LayerQuant* own = metadata_->FindLayer(module);
      const size_t experts = module.rfind(".experts.");  // a list may name the experts of a layer as one module
      if (!own && experts != module.npos) own = metadata_->FindLayer(module.substr(0, experts + 8));
      return own ? *own : LayerQuant{};
    }
    if (metadata_->experts && checkpoint::IsExpertRole(role)) return *metadata_->experts;
    for (const auto& [selection, quant] : groups_) if (selection.Contains(module)) return *quant;
    return metadata_->main;
  }

 private:
  explicit Labels(const QuantMetadata& metadata) : metadata_(&metadata) {}
  const QuantMetadata* metadata_;
  LayerSelection excluded_;
  std::vector<std::pair<LayerSelection, const LayerQuant*>> groups_;
};

std::string Word(const LayerQuant& label) { return label.label.empty() ? std::string(label.algo == QuantAlgo::kNone ? "not quantized" : QuantAlgoName(label.algo)) : label.label; }

}  // namespace

base::Result<std::optional<std::string>> LabelDisagreement(const QuantMetadata& metadata, const std::vector<SourceMatrix>& matrices) {
  HB_ASSIGN_OR_RETURN(const Labels labels, Labels::Make(metadata));
  // Experts of a layer that are stored alike have one label: exclude lists with a thousand entries are not asked about every expert.
  std::map<std::tuple<int32_t, TensorRole, std::string>, bool> known;
  int64_t disagreeing = 0;
  std::string first;
  for (const SourceMatrix& m : matrices) {
    if (!IsLabelled(m.id.role)) continue;
    auto [at, fresh] = known.emplace(std::tuple{m.id.layer, m.id.role, m.format.ToString()}, true);
    if (fresh) {
      const std::string module(checkpoint::SplitTensorName(m.weight->name).stem);
      const LayerQuant label = labels.Of(module, m.id.role);
      at->second = FamilyOf(label.algo) == Family::kUnknown || FamilyOf(label.algo) == FamilyOf(m.format);
      if (!at->second && first.empty()) first = base::StrCat(module, ": the label says ", Word(label), ", the tensor is ", m.format.ToString());
    }
    disagreeing += !at->second;
  }
  if (!disagreeing) return std::nullopt;
  return base::StrCat("the configuration and the tensors disagree about ", disagreeing, " matrices (", first, "); the tensors decide");
}

bool IsWeightOnly(const QuantMetadata& metadata, const std::vector<SourceMatrix>& matrices) {
  const LayerQuant& label = metadata.experts ? *metadata.experts : metadata.main;
  auto no_w4a4 = [](const LayerQuant& q) { return q.algo != QuantAlgo::kNvfp4 || q.weight_only; };
  const bool said = label.weight_only || (!metadata.layers.empty() && std::all_of(metadata.layers.begin(), metadata.layers.end(), [&](const auto& l) { return no_w4a4(l.second); })) ||
                    (!metadata.groups.empty() && std::all_of(metadata.groups.begin(), metadata.groups.end(), [&](const auto& g) { return no_w4a4(g.quant); }));
  bool any = false;
  for (const SourceMatrix& m : matrices) {
    if (!checkpoint::IsExpertRole(m.id.role)) continue;
    if (!m.format.is_nvfp4() || m.input_scale) return false;
    any = true;
  }
  return said && any;
}

}  // namespace halfbyte::quant
