#include "checkpoint/quant_metadata.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "checkpoint/name_rules.h"
#include "checkpoint/quant_labels.h"

namespace halfbyte::checkpoint {
namespace {

using base::Json;
using base::StrCat;
using internal::QuantSection;

// The section of config.json: at the top, in a text model's own configuration, or under compressed-tensors' old name.
const Json* FindSection(const Json& config) {
  for (const char* inside : {"", "text_config", "llm_config", "language_config", "thinker_config"}) {
    const Json* c = *inside ? config.Find(inside) : &config;
    for (const char* key : {"quantization_config", "compression_config"})
      if (const Json* section = c ? c->Find(key) : nullptr; section && !section->is_null()) return section;
  }
  return nullptr;
}

std::vector<std::string> Differences(const QuantMetadata& a, const QuantSection& b_section, bool a_says_kv, bool a_says_excludes) {
  const QuantMetadata& b = b_section.metadata;
  std::vector<std::string> out;
  auto named = [](const LayerQuant& q) { return q.label.empty() ? std::string(QuantAlgoName(q.algo)) : q.label; };
  if (a.main.algo != b.main.algo) out.push_back(StrCat("the algorithm (", named(a.main), " and ", named(b.main), ")"));
  else if (a.main.group_size != b.main.group_size) out.push_back(StrCat("the group size (", a.main.group_size, " and ", b.main.group_size, ")"));
  if (a_says_kv && b_section.says_kv_cache && a.kv_cache != b.kv_cache) out.push_back("the KV cache");
  std::set<std::string> ours(a.excludes.begin(), a.excludes.end()), theirs(b.excludes.begin(), b.excludes.end());
  if (a_says_excludes && b_section.says_excludes && ours != theirs) out.push_back(StrCat("the excluded modules (", ours.size(), " and ", theirs.size(), " patterns)"));
  auto sorted = [](auto layers) { std::sort(layers.begin(), layers.end(), [](const auto& x, const auto& y) { return x.first < y.first; }); return layers; };
  if (!a.layers.empty() && !b.layers.empty() && sorted(a.layers) != sorted(b.layers)) out.push_back("quantized_layers");
  return out;
}

// What the section leaves unsaid comes from ModelOpt's file; what both say must agree.
void Merge(QuantSection& section, QuantSection& file) {
  QuantMetadata& m = section.metadata;
  QuantMetadata& other = file.metadata;
  if (m.dialect == QuantDialect::kNone) { section = std::move(file); return; }
  if (other.dialect == QuantDialect::kNone && !file.says_excludes) return;
  std::vector<std::string> differences = Differences(m, file, section.says_kv_cache, section.says_excludes);
  if (!differences.empty()) {
    std::string list = differences.front();
    for (size_t i = 1; i < differences.size(); ++i) list += (i + 1 == differences.size() ? " and " : ", ") + differences[i];
    m.warnings.push_back(StrCat("config.json and hf_quant_config.json disagree about ", list, "; config.json counts"));
  }
  if (!section.says_kv_cache) m.kv_cache = other.kv_cache;
  if (!section.says_excludes) { m.excludes = std::move(other.excludes); m.excludes_origin = std::move(other.excludes_origin); }
  if (m.layers.empty()) m.layers = std::move(other.layers);
  if (m.producer.empty()) m.producer = std::move(other.producer);
}

}  // namespace

std::string_view QuantDialectName(QuantDialect dialect) {
  switch (dialect) {
    case QuantDialect::kNone: return "none";
    case QuantDialect::kFp8: return "fp8";
    case QuantDialect::kModelOpt: return "modelopt";
    case QuantDialect::kCompressedTensors: return "compressed-tensors";
    case QuantDialect::kMxfp4: return "mxfp4";
    case QuantDialect::kMxfp8: return "mxfp8";
  }
  return "?";
}

std::string_view QuantAlgoName(QuantAlgo algo) {
  switch (algo) {
    case QuantAlgo::kNone: return "none";
    case QuantAlgo::kFp8Tensor: return "FP8 per tensor";
    case QuantAlgo::kFp8Channel: return "FP8 per channel";
    case QuantAlgo::kFp8Block: return "FP8 by blocks";
    case QuantAlgo::kMxfp8: return "MXFP8";
    case QuantAlgo::kNvfp4: return "NVFP4";
    case QuantAlgo::kMxfp4: return "MXFP4";
    case QuantAlgo::kOther: return "other";
  }
  return "?";
}

const LayerQuant* QuantMetadata::FindLayer(std::string_view module) const {
  std::string wanted = NameMap::StripWrappers(module);
  auto from = [&](const std::string& key) { return std::lower_bound(layers.begin(), layers.end(), key, [](const auto& entry, const std::string& k) { return entry.first < k; }); };
  if (auto at = from(wanted); at != layers.end() && at->first == wanted) return &at->second;
  wanted += '.';
  auto below = from(wanted);
  return below != layers.end() && below->first.starts_with(wanted) ? &below->second : nullptr;
}

std::optional<std::array<int64_t, 2>> QuantMetadata::Fp8Block() const {
  if (main.block[0] > 0) return main.block;
  if (experts && experts->block[0] > 0) return experts->block;
  for (const auto& [module, quant] : layers) if (quant.block[0] > 0) return quant.block;
  for (const QuantGroup& group : groups) if (group.quant.block[0] > 0) return group.quant.block;
  return std::nullopt;
}

base::Result<QuantMetadata> ReadQuantMetadata(const Json& config, const Json* hf_quant_config) {
  QuantSection section;
  if (const Json* found = FindSection(config)) {
    HB_ASSIGN_OR_RETURN_AT(section, internal::ReadInlineSection(*found), "config.json quantization_config");
  }
  if (hf_quant_config && !hf_quant_config->is_null()) {
    HB_ASSIGN_OR_RETURN_AT(QuantSection file, internal::ReadModelOptFile(*hf_quant_config), "hf_quant_config.json");
    Merge(section, file);
  }
  QuantMetadata& m = section.metadata;
  if (m.main.label == "MIXED_PRECISION" && m.layers.empty() && !m.experts && m.dialect == QuantDialect::kModelOpt)
    m.warnings.push_back("the label MIXED_PRECISION comes without quantized_layers; the tensors decide");
  if (m.dialect == QuantDialect::kNone) m.origin.clear();
  std::sort(m.layers.begin(), m.layers.end(), [](const auto& a, const auto& b) { return std::tie(a.first, a.second.label) < std::tie(b.first, b.second.label); });
  return std::move(m);
}

}  // namespace halfbyte::checkpoint
