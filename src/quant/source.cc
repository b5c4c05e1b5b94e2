#include "quant/source.h"

#include <algorithm>
#include <set>

#include "quant/source_format.h"

namespace halfbyte::quant {
namespace {

// All tensors of one stem.
struct Stem {
  StackedLayout layout = StackedLayout::kPerExpert;
  std::map<TensorPart, const TensorEntry*> parts;
};
using Stems = std::map<TensorId, Stem>;

// Lists at most ten names; the rest is a count.
std::string ListNames(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < names.size() && i < 10; ++i) out += (i ? ", " : "") + names[i];
  if (names.size() > 10) out += base::StrCat(" and ", names.size() - 10, " more");
  return out;
}

base::Result<Stems> CollectStems(const checkpoint::Checkpoint& files, const checkpoint::NameMap& names, SourceMap& map) {
  Stems stems;
  std::vector<std::string> unknown, surplus;
  std::set<int32_t> surplus_layers;
  for (const TensorEntry& entry : files.tensors()) {
    checkpoint::NameMatch match = names.Match(entry.name);
    if (auto* skipped = std::get_if<checkpoint::SkippedName>(&match)) {
      ++map.skipped[skipped->reason];
      map.skipped_bytes += static_cast<int64_t>(entry.size);
    } else if (auto* m = std::get_if<checkpoint::MatchedName>(&match)) {
      Stem& stem = stems[m->id];
      stem.layout = m->layout;
      auto [it, fresh] = stem.parts.emplace(m->part, &entry);
      if (!fresh)
        return base::Fail(base::ErrorCode::kBadFile, m->id.ToString(), ": ", TensorPartName(m->part), " is there twice, as ", it->second->name, " and as ", entry.name);
    } else if (auto* layer = std::get_if<checkpoint::SurplusName>(&match)) {
      surplus.push_back(entry.name);
      surplus_layers.insert(layer->layer);
    } else {
      unknown.push_back(entry.name);
    }
  }
  if (!surplus.empty())
    return base::Fail(base::Error(base::ErrorCode::kBadFile, base::StrCat("the files hold decoder layers that config.json does not count (", *surplus_layers.begin(), " to ", *surplus_layers.rbegin(), "): ", ListNames(surplus)))
                          .Hint("mend \"num_hidden_layers\" where the model has them, or give their number as \"num_nextn_predict_layers\" where they are MTP layers"));
  if (!unknown.empty())
    return base::Fail(base::Error(base::ErrorCode::kBadFile, base::StrCat(unknown.size(), " tensors are not part of this model family: ", ListNames(unknown)))
                          .Hint("the family may be a newer variant; nothing was loaded"));
  return stems;
}

const TensorEntry* PartOf(const Stem& stem, TensorPart part) {
  auto it = stem.parts.find(part);
  return it == stem.parts.end() ? nullptr : it->second;
}

// Where an expected matrix comes from: its own stem, a stacked tensor of its layer, or (lm_head) the embedding.
struct Found { const Stem* stem; int64_t stack_index; int8_t half; TensorId key; };

std::optional<Found> FindStem(const Stems& stems, const TensorId& id, const SourceOptions& options) {
  auto has_weight = [&](const TensorId& key) -> const Stem* {
    auto it = stems.find(key);
    if (it == stems.end()) return nullptr;
    const auto& p = it->second.parts;
    return p.count(TensorPart::kWeight) || p.count(TensorPart::kWeightPacked) || p.count(TensorPart::kBlocks) ? &it->second : nullptr;
  };
  if (const Stem* s = has_weight(id)) return Found{s, 0, -1, id};
  if (id.role == TensorRole::kExpertGate || id.role == TensorRole::kExpertUp) {
    TensorId key{TensorRole::kExpertGateUp, id.layer, -1};
    if (const Stem* s = has_weight(key)) return Found{s, id.expert, static_cast<int8_t>(id.role == TensorRole::kExpertUp), key};
  }
  if (checkpoint::IsExpertRole(id.role)) {
    TensorId key{id.role, id.layer, -1};
    if (const Stem* s = has_weight(key)) return Found{s, id.expert, -1, key};
  }
  if (id.role == TensorRole::kLmHead && options.head_may_be_embedding) {
    TensorId key{TensorRole::kEmbedding, -1, -1};
    if (const Stem* s = has_weight(key)) return Found{s, 0, -1, key};
  }
  return std::nullopt;
}

// Marks what is used, so that what is left can be explained or refused.
class Uses {
 public:
  const TensorEntry* Take(const TensorEntry* e) { if (e) used_.insert(e); return e; }
  bool Has(const TensorEntry* e) const { return used_.count(e) != 0; }
 private:
  std::set<const TensorEntry*> used_;
};

base::Result<SourceMatrix> MakeMatrix(const Found& found, const ExpectedTensor& want, const SourceOptions& options, Uses& uses) {
  const Stem& stem = *found.stem;
  SourceMatrix m;
  m.id = want.id;
  m.rows = want.rows;
  m.cols = want.cols;
  m.layout = stem.layout;
  m.stack_index = found.stack_index;
  m.half = found.half;
  m.weight = PartOf(stem, TensorPart::kWeight);
  if (!m.weight) m.weight = PartOf(stem, TensorPart::kWeightPacked);
  if (!m.weight) m.weight = PartOf(stem, TensorPart::kBlocks);
  m.scale = PartOf(stem, TensorPart::kWeightScale);
  if (!m.scale) m.scale = PartOf(stem, TensorPart::kScales);
  m.outer = PartOf(stem, TensorPart::kWeightScale2);
  if (const TensorEntry* divisor = PartOf(stem, TensorPart::kWeightGlobalScale)) { m.outer = divisor; m.outer_is_divisor = true; }
  m.input_scale = PartOf(stem, TensorPart::kInputScale);
  if (const TensorEntry* divisor = PartOf(stem, TensorPart::kInputGlobalScale)) { m.input_scale = divisor; m.input_is_divisor = true; }
  m.pre_scale = PartOf(stem, TensorPart::kPreQuantScale);
  HB_ASSIGN_OR_RETURN(m.format, DetectFormat(m, options));
  if (m.pre_scale && m.format.is_plain())
    return base::Fail(base::ErrorCode::kUnsupported, "tensor ", m.pre_scale->name, ": activation factors beside a weight that is not quantized");
  if (const TensorEntry* awq = m.pre_scale) {
    const int64_t n = awq->shape.elements();
    if (!tensor::IsPlainFloat(awq->dtype) || (n != m.cols && (m.layout == StackedLayout::kPerExpert || n != m.weight->shape[0] * m.cols)))
      return base::Fail(base::ErrorCode::kBadFile, "tensor ", awq->name, ": ", DTypeName(awq->dtype), " ", awq->shape.ToString(), ", ", m.cols, " factors are wanted");
  }
  uses.Take(m.weight);
  uses.Take(m.pre_scale);
  if (!m.format.is_plain()) uses.Take(m.scale);
  if (m.format.is_nvfp4()) uses.Take(m.outer);  // beside another format nobody would multiply by it
  return m;
}

base::Status CheckVector(const TensorEntry& entry, const ExpectedTensor& want) {
  if (!tensor::IsPlainFloat(entry.dtype))
    return base::Fail(base::ErrorCode::kBadFile, "tensor ", entry.name, ": dtype ", DTypeName(entry.dtype), ", a floating point vector is wanted");
  if (entry.shape.elements() != want.rows)
    return base::Fail(base::ErrorCode::kBadFile, "tensor ", entry.name, ": shape ", entry.shape.ToString(), ", ", want.rows, " elements are wanted");
  return {};
}

// k_scale and v_scale hang on the stems of k_proj and v_proj; they are optional and become vectors of one value. Anywhere else they have no place.
base::Status TakeKvScales(const Stems& stems, SourceMap& map, Uses& uses) {
  for (const auto& [id, stem] : stems)
    for (auto [part, role] : {std::pair{TensorPart::kKScale, TensorRole::kK}, {TensorPart::kVScale, TensorRole::kV}}) {
      const TensorEntry* e = id.role == role ? uses.Take(PartOf(stem, part)) : nullptr;
      if (!e) continue;
      HB_RETURN_IF_ERROR(CheckVector(*e, {id, part, 1, 0}));
      map.vectors.push_back({id, part, 1, e});
    }
  return {};
}

// A stacked tensor must have exactly the experts that the model has: what lies behind the last one would never be read.
base::Status CheckStackedExperts(const SourceMap& map) {
  std::map<const TensorEntry*, int64_t> experts;
  for (const SourceMatrix& m : map.matrices)
    if (m.layout != StackedLayout::kPerExpert) experts[m.weight] = std::max(experts[m.weight], m.stack_index + 1);
  for (const auto& [entry, n] : experts)
    if (entry->shape[0] != n) return base::Fail(base::ErrorCode::kBadFile, "tensor ", entry->name, ": shape ", entry->shape.ToString(), ", ", n, " experts are expected");
  return {};
}

// What is left must be a companion that no mode reads.
base::Status ExplainRest(const Stems& stems, const Uses& uses, SourceMap& map) {
  std::vector<std::string> rest;
  for (const auto& [id, stem] : stems)
    for (const auto& [part, entry] : stem.parts) {
      if (uses.Has(entry)) continue;
      if (part == TensorPart::kInputScale || part == TensorPart::kInputGlobalScale || part == TensorPart::kWeightShape) map.discarded.push_back(entry);
      else rest.push_back(entry->name);
    }
  if (!rest.empty())
    return base::Fail(base::Error(base::ErrorCode::kBadFile, base::StrCat(rest.size(), " tensors have no place in this model: ", ListNames(rest)))
                          .Hint("config.json and the tensors disagree; nothing was loaded"));
  return {};
}

}  // namespace

base::Result<SourceMap> MapSources(const checkpoint::Checkpoint& files, const checkpoint::NameMap& names, const std::vector<ExpectedTensor>& expected,
                                   const SourceOptions& options) {
  SourceMap map;
  HB_ASSIGN_OR_RETURN(const Stems stems, CollectStems(files, names, map));
  Uses uses;
  std::vector<std::string> missing;
  for (const ExpectedTensor& want : expected) {
    const bool is_vector = want.cols == 0;
    if (is_vector) {
      auto it = stems.find(want.id);
      const TensorEntry* entry = it == stems.end() ? nullptr : PartOf(it->second, want.part);
      if (!entry) { missing.push_back(names.ExampleName(want.id, want.part)); continue; }
      HB_RETURN_IF_ERROR(CheckVector(*entry, want));
      map.vectors.push_back({want.id, want.part, want.rows, uses.Take(entry)});
      continue;
    }
    std::optional<Found> found = FindStem(stems, want.id, options);
    if (!found) { missing.push_back(names.ExampleName(want.id, want.part)); continue; }
    if (want.id.role == TensorRole::kLmHead && found->key.role == TensorRole::kEmbedding) map.tied = true;
    HB_ASSIGN_OR_RETURN_AT(SourceMatrix m, MakeMatrix(*found, want, options, uses), want.id.ToString());
    map.matrices.push_back(std::move(m));
  }
  if (!missing.empty())
    return base::Fail(base::Error(base::ErrorCode::kBadFile, base::StrCat(missing.size(), " tensors are missing: ", ListNames(missing)))
                          .Hint("the download may be incomplete; nothing was loaded"));
  HB_RETURN_IF_ERROR(CheckStackedExperts(map));
  HB_RETURN_IF_ERROR(TakeKvScales(stems, map, uses));
  // Activation scales are used where the matrix they belong to is NVFP4; those of FP8 matrices describe another range and are discarded.
  for (SourceMatrix& m : map.matrices) {
    if (m.format.is_nvfp4()) uses.Take(m.input_scale);
    else m.input_scale = nullptr;
  }
  HB_RETURN_IF_ERROR(ExplainRest(stems, uses, map));
  return map;
}

}  // namespace halfbyte::quant
