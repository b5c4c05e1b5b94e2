// The section of config.json in compressed-tensors' words; keys and defaults of its releases 0.19 and 0.20.
#include <algorithm>
#include <map>
#include <set>

#include "checkpoint/config_json.h"
#include "checkpoint/quant_config_writer.h"

namespace halfbyte::checkpoint {
namespace {

using base::Json;
using internal::Producer;
using internal::Strings;

constexpr const char* kNvfp4 = "nvfp4-pack-quantized";

bool IsEmbedding(std::string_view module) {
  const std::string_view last = module.substr(module.rfind('.') + 1);
  return last == "embed_tokens" || last == "embeddings" || last == "embedding" || last == "wte" || last == "tok_embeddings";
}

// One number format; every key is written, as the tool does.
struct Numbers {
  int bits = 8;
  const char* strategy = "tensor";
  Json dynamic = false, group_size, scale_dtype, observer, block;
  Json ToJson() const {
    return Json(Json::Object{{"actorder", nullptr}, {"block_structure", block}, {"dynamic", dynamic}, {"group_size", group_size}, {"num_bits", bits}, {"observer", observer},
                             {"observer_kwargs", Json::MakeObject()}, {"scale_dtype", scale_dtype}, {"strategy", strategy}, {"symmetric", true}, {"type", "float"}, {"zp_dtype", nullptr}});
  }
};
constexpr const char* kOnce = "memoryless_minmax";   // observers: how a scale came about; readers do not look
constexpr const char* kMeasured = "static_minmax";

Json Group(const char* format, Json weights, Json inputs, const std::vector<std::string>& targets) {
  return Json(Json::Object{{"format", format}, {"input_activations", std::move(inputs)}, {"output_activations", nullptr}, {"targets", Strings(targets)}, {"weights", std::move(weights)}});
}

Json Nvfp4Group(const WrittenQuant& written, const std::vector<std::string>& targets) {
  auto numbers = [&](bool activations) {
    return Numbers{4, "tensor_group", activations ? Json("local") : Json(false), written.group_size, "torch.float8_e4m3fn", activations ? kMeasured : kOnce, {}}.ToJson();
  };
  return Group(kNvfp4, numbers(false), written.weight_only ? Json() : numbers(true), targets);
}

// FP8 as its presets have it: FP8 (static), FP8_DYNAMIC, FP8_BLOCK, MXFP8.
Json Fp8Group(const LayerQuant& quant, const std::vector<std::string>& targets) {
  Numbers weights{.observer = kOnce}, inputs{.strategy = "token", .dynamic = true};
  if (quant.static_activations) inputs = {.observer = kMeasured};
  const char* format = "float-quantized";
  switch (quant.algo) {
    case QuantAlgo::kFp8Channel: weights.strategy = "channel"; break;
    case QuantAlgo::kFp8Block:
      weights.strategy = "block";
      weights.block = Json(Json::Array{Json(quant.block[0]), Json(quant.block[1])});
      if (!quant.static_activations) inputs.strategy = "group", inputs.group_size = quant.block[1];
      break;
    case QuantAlgo::kMxfp8:
      format = "mxfp8-quantized";
      weights.strategy = inputs.strategy = "group";
      weights.group_size = inputs.group_size = 32;
      weights.scale_dtype = inputs.scale_dtype = "torch.uint8";
      break;
    default: break;
  }
  return Group(format, weights.ToJson(), inputs.ToJson(), targets);
}

std::string EscapedForRegex(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '.') out += '\\';
    out += c;
  }
  return out;
}

// The NVFP4 modules by name, but for the experts of a layer: one pattern for each of gate, up and down instead of a name for every expert. Only where no
// other module of the model has such a name; otherwise the names themselves.
std::vector<std::string> Targets(const std::vector<std::string>& modules, const std::vector<std::string>& others) {
  constexpr std::string_view kExperts = ".experts.";
  auto parts = [&](std::string_view module) -> std::optional<std::pair<std::string, std::string>> {
    const size_t at = module.rfind(kExperts);
    if (at == module.npos) return std::nullopt;
    const size_t number = at + kExperts.size(), end = module.find('.', number);
    if (end == module.npos || !std::all_of(module.begin() + static_cast<ptrdiff_t>(number), module.begin() + static_cast<ptrdiff_t>(end), [](unsigned char c) { return c >= '0' && c <= '9'; })) return std::nullopt;
    return std::pair{std::string(module.substr(0, number)), std::string(module.substr(end))};
  };
  std::set<std::pair<std::string, std::string>> taken;
  for (const std::string& module : others) if (auto p = parts(module)) taken.insert(*p);
  std::vector<std::string> out;
  std::set<std::string> seen;
  for (const std::string& module : modules) {
    const auto p = parts(module);
    std::string target = p && !taken.count(*p) ? base::StrCat("re:^", EscapedForRegex(p->first), "[0-9]+", EscapedForRegex(p->second), "$") : module;
    if (seen.insert(target).second) out.push_back(std::move(target));
  }
  return out;
}

// Layers that stay FP8 get groups of their own, by name.
Json MixedGroups(const WrittenQuant& written) {
  Json groups = Json::MakeObject();
  groups.Set("group_0", Nvfp4Group(written, Targets(written.quantized, written.kept)));
  internal::AddKeptGroups(written, Fp8Group, groups);
  return groups;
}

}  // namespace

Json MakeCompressedTensorsConfig(const WrittenQuant& written) {
  const bool mixed = !written.kept_quantized.empty();
  Json groups = mixed ? MixedGroups(written) : Json(Json::Object{{"group_0", Nvfp4Group(written, {"Linear"})}});
  // Full paths, as the tool itself writes them: no pattern can hit too much. Embeddings are no Linear modules and are not meant by the group.
  std::set<std::string> grouped;
  for (const auto& [module, quant] : written.kept_quantized) grouped.insert(module);
  std::vector<std::string> ignore;
  for (const std::string& module : written.kept) if (!IsEmbedding(module) && !grouped.count(module)) ignore.push_back(module);
  const Json kv = written.kv_cache == KvCacheAlgo::kFp8 ? Numbers{.observer = kMeasured}.ToJson() : Json();
  return Json(Json::Object{{"config_groups", std::move(groups)}, {"format", mixed ? "mixed-precision" : kNvfp4}, {"global_compression_ratio", nullptr},
                           {"ignore", Strings(ignore)}, {"kv_cache_scheme", kv}, {"quant_method", "compressed-tensors"}, {"quantization_status", "compressed"},
                           {"sparsity_config", Json::MakeObject()}, {"transform_config", Json::MakeObject()}, {"version", "0.19.0"}, {"producer", Producer(written)}});
}

}  // namespace halfbyte::checkpoint
