#include "checkpoint/quant_config_writer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "checkpoint/config_json.h"
#include "checkpoint/exclude_list.h"

namespace halfbyte::checkpoint {
namespace {

using base::Json;
using internal::Producer;
using internal::Strings;

// ModelOpt's description of a number format inside a config group.
Json Numbers(int bits, int group_size) {
  Json numbers(Json::Object{{"dynamic", false}, {"num_bits", bits}, {"type", "float"}});
  if (group_size) numbers.Set("group_size", group_size);
  return numbers;
}

Json Nvfp4Group(const WrittenQuant& written, std::vector<std::string> targets) {
  Json group = Json::MakeObject();
  if (!written.weight_only) group.Set("input_activations", Numbers(4, written.group_size));
  group.Set("weights", Numbers(4, written.group_size));
  group.Set("targets", Strings(targets));
  return group;
}

Json Fp8Group(const LayerQuant& quant, std::vector<std::string> targets) {
  Json weights = Numbers(8, 0);
  if (quant.algo == QuantAlgo::kFp8Block) {
    weights.Set("strategy", "block");
    weights.Set("block_structure", Json(Json::Array{Json(quant.block[0]), Json(quant.block[1])}));
  } else if (quant.algo == QuantAlgo::kFp8Channel) {
    weights.Set("strategy", "channel");
  }
  Json group = Json::MakeObject();
  if (!quant.weight_only) group.Set("input_activations", Numbers(8, 0));
  group.Set("weights", std::move(weights));
  group.Set("targets", Strings(targets));
  return group;
}

const char* ModelOptWord(const LayerQuant& quant) {
  switch (quant.algo) {
    case QuantAlgo::kFp8Block: return "FP8_PB_WO";
    case QuantAlgo::kFp8Channel: return "FP8_PER_CHANNEL_PER_TOKEN";
    case QuantAlgo::kMxfp8: return "MXFP8";
    default: return "FP8";
  }
}
const char* Nvfp4Word(const WrittenQuant& written) { return written.pre_quant_scale ? "NVFP4_AWQ" : written.weight_only ? "W4A16_NVFP4" : "NVFP4"; }

// quantized_layers of a MIXED_PRECISION file: every quantized module by name; what is not listed is not quantized.
Json LayerMap(const WrittenQuant& written) {
  std::map<std::string, Json> sorted;
  for (const std::string& module : written.quantized) sorted[module] = Json(Json::Object{{"quant_algo", Nvfp4Word(written)}, {"group_size", written.group_size}});
  for (const auto& [module, quant] : written.kept_quantized) {
    Json& entry = sorted[module] = Json(Json::Object{{"quant_algo", ModelOptWord(quant)}});
    // FP8_PB_WO alone means 128 x 128.
    if (quant.algo == QuantAlgo::kFp8Block && quant.block != std::array<int64_t, 2>{128, 128}) entry.Set("weight_block_size", Json(Json::Array{Json(quant.block[0]), Json(quant.block[1])}));
  }
  Json map = Json::MakeObject();
  for (auto& [module, entry] : sorted) map.as_object().emplace_back(module, std::move(entry));
  return map;
}

Json Groups(const WrittenQuant& written) {
  Json groups = Json::MakeObject();
  if (written.kept_quantized.empty()) { groups.Set("group_0", Nvfp4Group(written, {"Linear"})); return groups; }
  groups.Set("group_0", Nvfp4Group(written, written.quantized));
  internal::AddKeptGroups(written, Fp8Group, groups);
  return groups;
}

void MarkInfinity(Json& v) {
  if (v.type() == Json::Type::kDouble && !std::isfinite(v.as_double())) {
    const char* word = std::isnan(v.as_double()) ? "NaN" : v.as_double() > 0 ? "Infinity" : "-Infinity";
    v = Json(Json::Object{{"__float__", word}});
  } else if (v.is_array()) {
    for (Json& e : v.as_array()) MarkInfinity(e);
  } else if (v.is_object()) {
    for (auto& member : v.as_object()) MarkInfinity(member.second);
  }
}

}  // namespace

ModelOptConfig MakeModelOptConfig(const WrittenQuant& written) {
  bool mixed = !written.kept_quantized.empty();
  const char* algo = mixed ? "MIXED_PRECISION" : Nvfp4Word(written);
  std::set<std::string> quantized_otherwise;
  for (const auto& [module, quant] : written.kept_quantized) quantized_otherwise.insert(module);
  std::vector<std::string> plain, quantized = written.quantized;
  for (const std::string& module : written.kept) if (!quantized_otherwise.count(module)) plain.push_back(module);
  quantized.insert(quantized.end(), quantized_otherwise.begin(), quantized_otherwise.end());
  std::vector<std::string> excludes = MakeExcludeList(plain, quantized);

  ModelOptConfig out;
  out.warnings = ExcludeListProblems(excludes, plain, quantized);
  Json kv = written.kv_cache == KvCacheAlgo::kFp8 ? Json("FP8") : written.kv_cache == KvCacheAlgo::kNvfp4 ? Json("NVFP4") : Json();

  Json inner(Json::Object{{"quant_algo", algo}, {"kv_cache_quant_algo", kv}, {"group_size", written.group_size}, {"exclude_modules", Strings(excludes)}});
  if (written.pre_quant_scale) { inner.Set("has_zero_point", false); inner.Set("pre_quant_scale", true); }
  if (mixed) inner.Set("quantized_layers", LayerMap(written));
  out.hf_quant_config = Json(Json::Object{{"producer", Producer(written)}, {"quantization", std::move(inner)}});

  Json& flat = out.quantization_config;
  flat.Set("config_groups", Groups(written));
  flat.Set("ignore", Strings(excludes));
  flat.Set("quant_algo", algo);
  flat.Set("group_size", written.group_size);
  if (mixed) flat.Set("quantized_layers", LayerMap(written));
  if (written.kv_cache == KvCacheAlgo::kFp8) flat.Set("kv_cache_scheme", Numbers(8, 0));
  if (written.kv_cache == KvCacheAlgo::kNvfp4) flat.Set("kv_cache_scheme", "NVFP4");
  flat.Set("producer", Producer(written));
  flat.Set("quant_method", "modelopt");
  return out;
}

Json WithQuantizationConfig(Json config, Json section) {
  auto drop = [](Json& object) {
    if (object.is_object()) std::erase_if(object.as_object(), [](const auto& m) { return m.first == "quantization_config" || m.first == "compression_config"; });
  };
  drop(config);
  for (const char* inside : {"text_config", "llm_config", "language_config", "thinker_config"}) if (Json* c = config.Find(inside)) drop(*c);
  config.Set("quantization_config", std::move(section));
  return config;
}

std::string ConfigText(const Json& config) {
  Json marked = config;
  MarkInfinity(marked);
  return marked.Dump(2) + "\n";
}

}  // namespace halfbyte::checkpoint
