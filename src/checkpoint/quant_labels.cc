#include "checkpoint/quant_labels.h"

#include <algorithm>
#include <cctype>

#include "checkpoint/name_rules.h"

namespace halfbyte::checkpoint::internal {
namespace {

using base::ErrorCode;
using base::Fail;
using base::Json;
using base::Result;
using base::StrCat;

std::string Upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

// Errors of the Json getters are about arguments; here the argument is a file.
template <typename T>
Result<T> FromFile(Result<T> value) {
  if (value) return value;
  return Fail(ErrorCode::kBadFile, value.error().message());
}
#define HB_FIELD(lhs, ...) HB_ASSIGN_OR_RETURN(lhs, FromFile(__VA_ARGS__))

tl::unexpected<base::Error> Wrong(std::string_view key, const Json& v, std::string_view wanted) {
  return Fail(ErrorCode::kBadFile, "\"", key, "\" is of type ", v.type_name(), ", ", wanted, " is wanted");
}

// Present and not null.
const Json* Said(const Json& object, std::string_view key) {
  const Json* v = object.Find(key);
  return v && !v->is_null() ? v : nullptr;
}

// A list of names; a single string counts as a list of one.
Result<std::vector<std::string>> Names(const Json& v, std::string_view key) {
  if (v.is_string()) return std::vector<std::string>{v.as_string()};
  if (!v.is_array()) return Wrong(key, v, "a list of names");
  std::vector<std::string> names;
  for (const Json& e : v.as_array()) {
    if (!e.is_string()) return Wrong(StrCat(key, "[", names.size(), "]"), e, "a name");
    names.push_back(e.as_string());
  }
  return names;
}

Result<const Json*> Object(const Json& parent, std::string_view key) {
  const Json* v = Said(parent, key);
  if (v && !v->is_object()) return Wrong(key, *v, "an object");
  return v;
}

Result<int> GroupSize(const Json& object) {
  HB_FIELD(int64_t n, object.GetIntOr("group_size", 0));
  if (n < 0 || n > 1 << 20) return Fail(ErrorCode::kBadFile, "\"group_size\" is ", n);
  return static_cast<int>(n);
}

Result<std::optional<std::array<int64_t, 2>>> BlockSize(const Json& object, std::string_view key) {
  const Json* v = Said(object, key);
  if (!v) return std::nullopt;
  if (!v->is_array() || v->as_array().size() != 2) return Fail(ErrorCode::kBadFile, "\"", key, "\" must be [rows, columns]");
  std::array<int64_t, 2> block;
  for (size_t i = 0; i < 2; ++i) {
    const Json& e = v->as_array()[i];
    if (!e.is_int() || e.as_int() <= 0 || e.as_int() > INT32_MAX) return Fail(ErrorCode::kBadFile, "\"", key, "\" must hold two positive integers");
    block[i] = e.as_int();
  }
  return block;
}

Result<KvCacheAlgo> KvCacheFromName(std::string_view name, std::vector<std::string>& warnings) {
  std::string word = Upper(name);
  if (word == "FP8" || word == "FLOAT8" || word == "FP8_E4M3" || word == "FP8_CAST") return KvCacheAlgo::kFp8;
  if (word == "NVFP4" || word == "FP4" || word == "FLOAT4" || word == "NVFP4_CAST") return KvCacheAlgo::kNvfp4;
  if (word != "AUTO" && word != "NONE" && !word.empty()) warnings.push_back(StrCat("the KV cache algorithm \"", name.substr(0, 100), "\" is not known and not used"));
  return KvCacheAlgo::kNone;
}

base::Status ReadKvCache(const Json& object, QuantSection& section) {
  auto& m = section.metadata;
  if (const Json* scheme = object.Find("kv_cache_scheme")) {
    section.says_kv_cache = true;
    if (scheme->is_null()) return {};
    if (scheme->is_string()) { HB_ASSIGN_OR_RETURN(m.kv_cache, KvCacheFromName(scheme->as_string(), m.warnings)); return {}; }
    if (!scheme->is_object()) return Wrong("kv_cache_scheme", *scheme, "an object, a word or null");
    HB_FIELD(std::string type, scheme->GetStringOr("type", ""));
    HB_FIELD(int64_t bits, scheme->GetIntOr("num_bits", 0));
    if (type == "float" && bits == 8) m.kv_cache = KvCacheAlgo::kFp8;
    else if (type == "float" && bits == 4) m.kv_cache = KvCacheAlgo::kNvfp4;
    else m.warnings.push_back(StrCat("a KV cache of ", bits, " bits of type \"", type.substr(0, 100), "\" is not known and not used"));
  } else if (const Json* algo = object.Find("kv_cache_quant_algo")) {
    section.says_kv_cache = true;
    if (algo->is_null()) return {};
    if (!algo->is_string()) return Wrong("kv_cache_quant_algo", *algo, "a word or null");
    HB_ASSIGN_OR_RETURN(m.kv_cache, KvCacheFromName(algo->as_string(), m.warnings));
  }
  return {};
}

// The first key that says something wins; an empty list says nothing.
base::Status ReadExcludes(const Json& object, std::string_view origin, QuantSection& section) {
  for (const char* key : {"ignore", "ignored_layers", "modules_to_not_convert", "exclude_modules"}) {
    const Json* v = object.Find(key);
    if (!v) continue;
    section.says_excludes = true;
    if (v->is_null()) continue;
    HB_ASSIGN_OR_RETURN(std::vector<std::string> names, Names(*v, key));
    if (names.empty()) continue;
    section.metadata.excludes = std::move(names);
    section.metadata.excludes_origin = StrCat(origin, " ", key);
    return {};
  }
  return {};
}

base::Status ReadProducer(const Json& object, QuantMetadata& m) {
  HB_ASSIGN_OR_RETURN(const Json* producer, Object(object, "producer"));
  if (!producer) return {};
  HB_FIELD(std::string name, producer->GetStringOr("name", ""));
  HB_FIELD(std::string version, producer->GetStringOr("version", ""));
  m.producer = version.empty() ? name : StrCat(name, " ", version);
  return {};
}

// quantized_layers: {path: {quant_algo, group_size}}. A null entry is a layer that is not quantized.
base::Status ReadLayers(const Json& object, QuantMetadata& m) {
  HB_ASSIGN_OR_RETURN(const Json* layers, Object(object, "quantized_layers"));
  if (!layers) return {};
  for (const auto& [path, v] : layers->as_object()) {
    if (v.is_null()) continue;
    if (v.is_string()) { m.layers.emplace_back(NameMap::StripWrappers(path), FromModelOptAlgo(v.as_string())); continue; }
    if (!v.is_object()) return Wrong(StrCat("quantized_layers.", path), v, "an object");
    HB_FIELD(std::string algo, v.GetStringOr("quant_algo", ""));
    LayerQuant quant = FromModelOptAlgo(algo);
    HB_ASSIGN_OR_RETURN(int group, GroupSize(v));
    if (group && quant.group_size) quant.group_size = group;
    HB_ASSIGN_OR_RETURN(auto block, BlockSize(v, "weight_block_size"));
    if (block && quant.algo == QuantAlgo::kFp8Block) quant.block = *block;
    m.layers.emplace_back(NameMap::StripWrappers(path), std::move(quant));
  }
  return {};
}

// config_groups, each with its targets. The first that targets the class Linear describes every layer that nothing else names.
Result<std::vector<QuantGroup>> ReadGroups(const Json& object, std::string_view format) {
  HB_ASSIGN_OR_RETURN(const Json* groups, Object(object, "config_groups"));
  std::vector<QuantGroup> out;
  if (!groups) return out;
  for (const auto& [name, group] : groups->as_object()) {
    if (group.is_null()) continue;
    if (!group.is_object()) return Wrong(StrCat("config_groups.", name), group, "an object");
    QuantGroup g;
    Result<LayerQuant> quant = FromConfigGroup(group, format);
    if (!quant) return Fail(std::move(quant.error()).At(StrCat("config_groups.", name)));
    g.quant = std::move(*quant);
    if (const Json* targets = Said(group, "targets")) { HB_ASSIGN_OR_RETURN(g.targets, Names(*targets, "targets")); }
    out.push_back(std::move(g));
  }
  return out;
}

bool TargetsLinear(const QuantGroup& g) { return g.targets.empty() || std::find(g.targets.begin(), g.targets.end(), "Linear") != g.targets.end(); }

// The group size that a file states in several places; two different ones are no reason to refuse it, the scales' shapes decide in the end.
base::Status SettleGroupSize(const Json& object, const std::vector<QuantGroup>& groups, QuantMetadata& m) {
  if (m.main.group_size == 0) return {};
  HB_ASSIGN_OR_RETURN(int stated, GroupSize(object));
  int of_weights = 0;
  // ModelOpt describes NVFP4_AWQ's group as one of 128 values with 8-bit activations, whatever the file holds.
  if (!m.main.pre_quant_scale)
    for (const QuantGroup& g : groups) if (TargetsLinear(g) && g.quant.group_size && !of_weights) of_weights = g.quant.group_size;
  if (stated && of_weights && stated != of_weights)
    m.warnings.push_back(StrCat(m.origin, " states the group sizes ", stated, " and ", of_weights, "; the shapes of the scales decide"));
  if (stated) m.main.group_size = stated;
  else if (of_weights) m.main.group_size = of_weights;
  return {};
}

base::Status ReadModelOptSection(const Json& object, QuantSection& section) {
  QuantMetadata& m = section.metadata;
  HB_FIELD(std::string algo, object.GetStringOr("quant_algo", ""));
  m.main = FromModelOptAlgo(algo);
  HB_ASSIGN_OR_RETURN(std::vector<QuantGroup> groups, ReadGroups(object, ""));
  HB_RETURN_IF_ERROR(ReadLayers(object, m));
  bool mixed = Upper(algo) == "MIXED_PRECISION";
  if (algo.empty() && !groups.empty()) m.main = groups.front().quant;
  if (mixed && m.layers.empty())
    for (const QuantGroup& g : groups)
      for (const std::string& target : g.targets)
        if (target != "Linear") m.layers.emplace_back(NameMap::StripWrappers(target), g.quant);
  // Activations count as unquantized where the word says so (W4A16_NVFP4), or every group does (user case T02b).
  if (!mixed && !groups.empty() && std::all_of(groups.begin(), groups.end(), [](const QuantGroup& g) { return g.quant.weight_only; })) {
    m.main.weight_only = true;
    m.main.activation_bits = 0;
  }
  HB_ASSIGN_OR_RETURN(auto block, BlockSize(object, "weight_block_size"));
  if (block && m.main.algo == QuantAlgo::kFp8Block) m.main.block = *block;
  HB_RETURN_IF_ERROR(SettleGroupSize(object, groups, m));
  if (m.main.algo == QuantAlgo::kOther) m.warnings.push_back(StrCat("the quantization \"", m.main.label.substr(0, 100), "\" is not known; the tensors decide"));
  return ReadProducer(object, m);
}

base::Status ReadFp8Section(const Json& object, QuantSection& section) {
  QuantMetadata& m = section.metadata;
  m.main = {.algo = QuantAlgo::kFp8Tensor, .label = "fp8", .activation_bits = 8};
  HB_ASSIGN_OR_RETURN(auto block, BlockSize(object, "weight_block_size"));
  if (block) { m.main.algo = QuantAlgo::kFp8Block; m.main.block = *block; }
  HB_FIELD(std::string scale_format, object.GetStringOr("scale_fmt", ""));
  m.scales_are_powers_of_two = Upper(scale_format) == "UE8M0";
  HB_FIELD(std::string experts, object.GetStringOr("moe_quant_algo", ""));
  if (!experts.empty()) {
    m.experts = FromModelOptAlgo(experts);
    HB_ASSIGN_OR_RETURN(int group, GroupSize(object));
    if (group && m.experts->group_size) m.experts->group_size = group;
    HB_RETURN_IF_ERROR(ReadLayers(object, m));
  }
  return ReadProducer(object, m);
}

base::Status ReadCompressedTensors(const Json& object, QuantSection& section) {
  QuantMetadata& m = section.metadata;
  HB_FIELD(std::string format, object.GetStringOr("format", ""));
  HB_FIELD(std::string version, object.GetStringOr("version", ""));
  m.producer = version.empty() ? "compressed-tensors" : "compressed-tensors " + version;
  HB_ASSIGN_OR_RETURN(std::vector<QuantGroup> groups, ReadGroups(object, format));
  if (groups.empty()) {  // files that state the format alone exist
    HB_ASSIGN_OR_RETURN(m.main, FromConfigGroup(Json::MakeObject(), format));
    return {};
  }
  auto linear = std::find_if(groups.begin(), groups.end(), TargetsLinear);
  if (linear != groups.end()) m.main = linear->quant;
  if (groups.size() > 1 || linear == groups.end()) m.groups = std::move(groups);
  return {};
}

}  // namespace

LayerQuant FromModelOptAlgo(std::string_view algo) {
  LayerQuant q{.label = std::string(algo)};
  std::string word = Upper(algo);
  auto is = [&](std::initializer_list<std::string_view> words) { return std::find(words.begin(), words.end(), word) != words.end(); };
  if (is({"", "NONE", "NO_QUANT", "MIXED_PRECISION"})) return q;
  q.activation_bits = 8;
  if (is({"FP8"})) q.algo = QuantAlgo::kFp8Tensor;
  else if (is({"FP8_PER_CHANNEL_PER_TOKEN"})) q.algo = QuantAlgo::kFp8Channel;
  else if (is({"FP8_PB_WO", "FP8_PB_REAL", "FP8_BLOCK_SCALES", "FP8_BLOCK"})) { q.algo = QuantAlgo::kFp8Block; q.block = {128, 128}; }
  else if (is({"MXFP8"})) { q.algo = QuantAlgo::kMxfp8; q.group_size = 32; }
  else if (is({"W4A8_MXFP4_FP8", "W4A8_MXFP4_MXFP8", "MXFP4", "W4A16_MXFP4"})) { q.algo = QuantAlgo::kMxfp4; q.group_size = 32; }
  else if (is({"NVFP4", "NVFP4_AWQ", "W4A16_NVFP4", "NVFP4_W4A16", "W4A8_NVFP4_FP8"})) { q.algo = QuantAlgo::kNvfp4; q.group_size = 16; }
  else q.algo = QuantAlgo::kOther;
  if (is({"NVFP4", "NVFP4_AWQ"})) q.activation_bits = 4;
  q.pre_quant_scale = is({"NVFP4_AWQ"});
  q.weight_only = is({"W4A16_NVFP4", "NVFP4_W4A16", "W4A16_MXFP4", "FP8_PB_WO"});
  if (q.weight_only || q.algo == QuantAlgo::kOther) q.activation_bits = 0;
  return q;
}

Result<LayerQuant> FromConfigGroup(const Json& group, std::string_view outer_format) {
  HB_FIELD(std::string format, group.GetStringOr("format", outer_format));
  HB_ASSIGN_OR_RETURN(const Json* weights, Object(group, "weights"));
  HB_ASSIGN_OR_RETURN(const Json* inputs, Object(group, "input_activations"));
  LayerQuant q{.label = format};
  if (inputs) {
    HB_FIELD(int64_t bits, inputs->GetIntOr("num_bits", 0));
    if (bits < 0 || bits > 64) return Fail(ErrorCode::kBadFile, "\"num_bits\" is ", bits);
    q.activation_bits = static_cast<int>(bits);
  }
  q.weight_only = weights && !inputs;
  std::string type, strategy;
  int64_t bits = 0;
  std::optional<std::array<int64_t, 2>> block;
  if (weights) {
    HB_FIELD(type, weights->GetStringOr("type", "int"));
    HB_FIELD(strategy, weights->GetStringOr("strategy", ""));
    HB_FIELD(bits, weights->GetIntOr("num_bits", 0));
    HB_ASSIGN_OR_RETURN(q.group_size, GroupSize(*weights));
    HB_ASSIGN_OR_RETURN(block, BlockSize(*weights, "block_structure"));
  }
  auto four_bits = [&] {
    if (q.group_size == 0) q.group_size = format == "mxfp4-pack-quantized" ? 32 : 16;
    q.algo = format == "mxfp4-pack-quantized" || (format.empty() && q.group_size == 32) ? QuantAlgo::kMxfp4 : QuantAlgo::kNvfp4;
  };
  if (!weights && format == "float-quantized") { q.algo = QuantAlgo::kFp8Tensor; return q; }
  if (!weights && (format == "nvfp4-pack-quantized" || format == "mxfp4-pack-quantized")) { four_bits(); return q; }
  if (!weights && format == "mxfp8-quantized") { q.algo = QuantAlgo::kMxfp8; q.group_size = 32; return q; }
  if (!weights && (format.empty() || format == "dense")) return q;

  if (type == "float" && bits == 4) four_bits();
  else if (type == "float" && bits == 8 && (format == "mxfp8-quantized" || (q.group_size == 32 && strategy == "group"))) { q.algo = QuantAlgo::kMxfp8; q.group_size = 32; }
  else if (type == "float" && bits == 8) {
    q.group_size = 0;
    if (strategy == "block" || block) { q.algo = QuantAlgo::kFp8Block; q.block = block.value_or(std::array<int64_t, 2>{128, 128}); }
    else q.algo = strategy == "channel" ? QuantAlgo::kFp8Channel : QuantAlgo::kFp8Tensor;
  } else {
    q.algo = QuantAlgo::kOther;
    if (q.label.empty()) q.label = StrCat(type, bits);
  }
  return q;
}

Result<QuantSection> ReadInlineSection(const Json& object) {
  if (!object.is_object()) return Wrong("quantization_config", object, "an object");
  QuantSection section;
  QuantMetadata& m = section.metadata;
  m.origin = "config.json quantization_config";
  HB_FIELD(std::string method, object.GetStringOr("quant_method", ""));
  std::string word = Upper(method);
  HB_FIELD(std::string algo, object.GetStringOr("quant_algo", ""));
  bool nothing_said = word.empty() && algo.empty() && !Said(object, "config_groups") && !Said(object, "format") && !Said(object, "weight_block_size");
  if (nothing_said) return section;

  HB_RETURN_IF_ERROR(ReadKvCache(object, section));
  HB_RETURN_IF_ERROR(ReadExcludes(object, "config.json", section));
  if (word.starts_with("MODELOPT") || (word.empty() && !algo.empty())) {
    m.dialect = QuantDialect::kModelOpt;
    HB_RETURN_IF_ERROR(ReadModelOptSection(object, section));
  } else if (word == "FP8" || word == "FBGEMM_FP8" || (word.empty() && Said(object, "weight_block_size"))) {
    m.dialect = QuantDialect::kFp8;
    HB_RETURN_IF_ERROR(ReadFp8Section(object, section));
    if (word == "FBGEMM_FP8") m.main.algo = QuantAlgo::kFp8Channel;
  } else if (word == "COMPRESSED-TENSORS" || word == "COMPRESSED_TENSORS" || word.empty()) {
    m.dialect = QuantDialect::kCompressedTensors;
    HB_RETURN_IF_ERROR(ReadCompressedTensors(object, section));
  } else if (word == "MXFP4" || word == "MXFP8") {
    m.dialect = word == "MXFP4" ? QuantDialect::kMxfp4 : QuantDialect::kMxfp8;
    m.main = {.algo = word == "MXFP4" ? QuantAlgo::kMxfp4 : QuantAlgo::kMxfp8, .label = method, .group_size = 32, .weight_only = word == "MXFP4", .activation_bits = word == "MXFP4" ? 0 : 8};
  } else {
    return Fail(base::Error(ErrorCode::kUnsupported, StrCat("quant_method \"", method.substr(0, 100), "\" is not read"))
                    .Hint("read are fp8, modelopt, compressed-tensors, mxfp4, mxfp8"));
  }
  return section;
}

Result<QuantSection> ReadModelOptFile(const Json& file) {
  QuantSection section;
  section.metadata.origin = "hf_quant_config.json";
  if (!file.is_object()) return Wrong("hf_quant_config.json", file, "an object");
  HB_ASSIGN_OR_RETURN(const Json* quantization, Object(file, "quantization"));
  const Json& object = quantization ? *quantization : file;  // flat files of this name exist
  HB_RETURN_IF_ERROR(ReadKvCache(object, section));
  HB_RETURN_IF_ERROR(ReadExcludes(object, "hf_quant_config.json", section));
  HB_RETURN_IF_ERROR(ReadModelOptSection(object, section));
  HB_RETURN_IF_ERROR(ReadProducer(file, section.metadata));
  bool says = section.metadata.main.algo != QuantAlgo::kNone || !section.metadata.layers.empty() || section.metadata.kv_cache != KvCacheAlgo::kNone;
  section.metadata.dialect = says ? QuantDialect::kModelOpt : QuantDialect::kNone;
  return section;
}

}  // namespace halfbyte::checkpoint::internal
