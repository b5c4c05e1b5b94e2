// The configuration files that we write against those that ModelOpt and llm-compressor wrote for the same model.
#include "checkpoint/quant_config_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "checkpoint/checkpoint.h"
#include "checkpoint/exclude_list.h"
#include "unit/checkpoint/test_files.h"

namespace halfbyte::checkpoint {
namespace {

namespace fs = std::filesystem;
using base::Json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr ExcludeReader kReaders[] = {ExcludeReader::kVllm, ExcludeReader::kSglang, ExcludeReader::kTensorRtLlm};

// The shipped demo model as `quantize` would describe it: experts converted, every other matrix kept, the tied lm_head named.
WrittenQuant Demo() {
  auto c = Checkpoint::Open(fs::path(HALFBYTE_SOURCE_DIR) / "models" / "demo");
  EXPECT_TRUE(c) << c.error().ToString();
  WrittenQuant written{.kept = {"lm_head"}, .version = "0.1.0"};
  for (const TensorEntry& e : c->tensors()) {
    if (e.shape.rank() < 2) continue;
    std::string module = e.name.substr(0, e.name.rfind(".weight"));
    (module.find(".experts.") != module.npos ? written.quantized : written.kept).push_back(module);
  }
  EXPECT_EQ(written.quantized.size(), 6u * 16 * 3);
  return written;
}
Json ReadJson(const fs::path& path) {
  auto text = platform::ReadWholeFile(path, 1 << 24);
  EXPECT_TRUE(text) << text.error().ToString();
  auto json = Json::Parse(*text);
  EXPECT_TRUE(json) << json.error().ToString();
  return *json;
}
std::vector<std::string> List(const Json& v) {
  std::vector<std::string> out;
  for (const Json& e : v.as_array()) out.push_back(e.as_string());
  return out;
}
// Everything in `theirs` is in `ours` with the same value, but for the paths listed.
void ExpectContains(const Json& ours, const Json& theirs, const std::set<std::string>& but, const std::string& path = "") {
  if (but.count(path)) return;
  if (!theirs.is_object()) { EXPECT_EQ(ours, theirs) << path << ": " << ours.Dump(); return; }
  for (const auto& [key, value] : theirs.as_object()) {
    std::string where = path.empty() ? key : path + "." + key;
    const Json* own = ours.Find(key);
    if (!own && but.count(where)) continue;
    ASSERT_NE(own, nullptr) << where;
    ExpectContains(*own, value, but, where);
  }
}
// Every module path of the model, ancestors included.
std::vector<std::string> AllModules(const WrittenQuant& written) {
  std::set<std::string> all;
  for (const auto* list : {&written.kept, &written.quantized})
    for (const std::string& module : *list)
      for (size_t dot = module.size(); dot != module.npos && dot != 0; dot = module.rfind('.', dot - 1)) all.insert(module.substr(0, dot));
  return {all.begin(), all.end()};
}

void CompareWithModelOpt(const std::string& folder, bool weight_only) {
  WrittenQuant written = Demo();
  written.weight_only = weight_only;
  ModelOptConfig ours = MakeModelOptConfig(written);
  EXPECT_THAT(ours.warnings, IsEmpty());
  Json file = ReadJson(SharedReference() / folder / "hf_quant_config.json");
  Json section = *ReadJson(SharedReference() / folder / "config.json").Find("quantization_config");
  ExpectContains(ours.hf_quant_config, file, {"producer", "quantization.exclude_modules"});
  ExpectContains(ours.quantization_config, section, {"producer", "ignore"});
  EXPECT_EQ(ours.quantization_config.Find("group_size")->as_int(), 16);
  EXPECT_EQ(ours.quantization_config.Find("producer")->Find("name")->as_string(), "halfbyte");
  std::vector<std::string> our_list = List(*ours.quantization_config.Find("ignore")), their_list = List(*section.Find("ignore"));
  EXPECT_EQ(our_list, List(*ours.hf_quant_config.Find("quantization")->Find("exclude_modules")));
  for (ExcludeReader reader : kReaders)
    for (const std::string& module : AllModules(written)) EXPECT_EQ(Excludes(reader, our_list, module), Excludes(reader, their_list, module)) << module;
}

TEST(QuantConfigWriter, SaysWhatModelOptSays) {
  HB_NEED_SHARED_REFERENCE();
  CompareWithModelOpt("demo-modelopt-config", false);
}
TEST(QuantConfigWriter, SaysWhatModelOptSaysOfW4A16) {
  HB_NEED_SHARED_REFERENCE();
  CompareWithModelOpt("demo-modelopt-w4a16-experts-config", true);
}
TEST(QuantConfigWriter, SaysWhatLlmCompressorSays) {
  HB_NEED_SHARED_REFERENCE();
  for (bool weight_only : {false, true}) {
    WrittenQuant written = Demo();
    written.weight_only = weight_only;
    Json ours = MakeCompressedTensorsConfig(written);
    Json theirs = *ReadJson(SharedReference() / "demo-compressed-tensors" / (weight_only ? "nvfp4a16-config.json" : "nvfp4-config.json")).Find("quantization_config");
    ExpectContains(ours, theirs, {"ignore"});
    EXPECT_THAT(List(*ours.Find("ignore")), testing::UnorderedElementsAreArray(List(*theirs.Find("ignore"))));
  }
}

TEST(QuantConfigWriter, WhatIsWrittenIsReadBackAlike) {
  WrittenQuant written = Demo();
  written.kv_cache = KvCacheAlgo::kFp8;
  written.settings = {{"contract", "modelopt"}, {"scale_search", "4over6"}};
  for (bool weight_only : {false, true}) {
    written.weight_only = weight_only;
    ModelOptConfig c = MakeModelOptConfig(written);
    auto m = ReadQuantMetadata(WithQuantizationConfig(Json::MakeObject(), c.quantization_config), &c.hf_quant_config);
    ASSERT_TRUE(m) << m.error().ToString();
    EXPECT_THAT(m->warnings, IsEmpty());
    EXPECT_EQ(m->main.algo, QuantAlgo::kNvfp4);
    EXPECT_EQ(m->main.weight_only, weight_only);
    EXPECT_EQ(m->kv_cache, KvCacheAlgo::kFp8);
    EXPECT_EQ(m->producer, "halfbyte 0.1.0");
    auto ct = ReadQuantMetadata(WithQuantizationConfig(Json::MakeObject(), MakeCompressedTensorsConfig(written)), nullptr);
    ASSERT_TRUE(ct) << ct.error().ToString();
    EXPECT_EQ(ct->main.algo, QuantAlgo::kNvfp4);
    EXPECT_EQ(ct->main.weight_only, weight_only);
  }
}

TEST(QuantConfigWriter, KeptFp8LayersMakeAMixedFile) {
  LayerQuant fp8{.algo = QuantAlgo::kFp8Block, .block = {128, 128}};
  WrittenQuant written{.quantized = {"model.layers.0.mlp.experts.0.up_proj"}, .kept = {"lm_head", "model.layers.0.self_attn.q_proj", "model.layers.0.mlp.gate"},
                       .kept_quantized = {{"model.layers.0.self_attn.q_proj", fp8}}, .version = "1"};
  ModelOptConfig c = MakeModelOptConfig(written);
  EXPECT_THAT(c.warnings, IsEmpty());
  EXPECT_THAT(List(*c.quantization_config.Find("ignore")), ElementsAre("lm_head", "model.layers.0.mlp.gate"));
  auto m = ReadQuantMetadata(WithQuantizationConfig(Json::MakeObject(), c.quantization_config), &c.hf_quant_config);
  ASSERT_TRUE(m) << m.error().ToString();
  EXPECT_THAT(m->warnings, IsEmpty());
  EXPECT_EQ(m->FindLayer("model.layers.0.self_attn.q_proj")->algo, QuantAlgo::kFp8Block);
  EXPECT_EQ(m->FindLayer("model.layers.0.mlp.experts")->algo, QuantAlgo::kNvfp4);
  EXPECT_EQ(m->FindLayer("model.layers.0.mlp.gate"), nullptr);
}

TEST(QuantConfigWriter, ReplacesTheSourcesSection) {
  Json config = *Json::Parse(R"({"a":1,"quantization_config":{"quant_method":"fp8"},"text_config":{"b":2,"quantization_config":{"quant_method":"fp8"}},"z":3})");
  Json section(Json::Object{{"quant_method", "modelopt"}});
  EXPECT_EQ(WithQuantizationConfig(config, section).Dump(), R"({"a":1,"text_config":{"b":2},"z":3,"quantization_config":{"quant_method":"modelopt"}})");
}
TEST(QuantConfigWriter, InfinitySurvives) {
  auto config = ParseConfigJson(R"({"limit":[0.0,Infinity]})");
  EXPECT_EQ(ConfigText(*config), "{\n  \"limit\": [\n    0.0,\n    {\n      \"__float__\": \"Infinity\"\n    }\n  ]\n}\n");
  EXPECT_EQ(ParseConfigJson(ConfigText(*config))->Dump(), config->Dump());
}

TEST(ExcludeList, WildcardsStandAfterWholeNamedComponentsOnly) {
  std::vector<std::string> kept = {"lm_head", "model.embed_tokens", "model.layers.1.self_attn.q_proj", "model.layers.1.mlp.down_proj", "model.layers.10.self_attn.q_proj", "model.layers.10.mlp.gate",
                                   "model.layers.10.mlp.shared_expert.up_proj", "model.layers.10.mlp.shared_expert_gate", "mtp.layers.0.mlp.experts.0.up_proj", "visual.blocks.0.attn"};
  std::vector<std::string> quantized = {"model.layers.10.mlp.experts.0.up_proj", "model.layers.2.mlp.experts.0.up_proj"};
  std::vector<std::string> list = MakeExcludeList(kept, quantized);
  EXPECT_THAT(list, ElementsAre("lm_head", "model.embed_tokens", "model.layers.1.mlp*", "model.layers.1.self_attn*", "model.layers.10.mlp.gate", "model.layers.10.mlp.shared_expert*",
                                "model.layers.10.mlp.shared_expert_gate", "model.layers.10.self_attn*", "mtp*", "visual*"));
  EXPECT_THAT(ExcludeListProblems(list, kept, quantized), IsEmpty());
}
TEST(ExcludeList, KeptExpertsOfALayerAreOnePattern) {
  std::vector<std::string> kept, quantized;
  for (int e = 0; e < 8; ++e) {
    kept.push_back(base::StrCat("model.layers.3.mlp.experts.", e, ".up_proj"));
    quantized.push_back(base::StrCat("model.layers.30.mlp.experts.", e, ".up_proj"));
  }
  kept.push_back("model.layers.3.mlp.gate");
  EXPECT_THAT(MakeExcludeList(kept, quantized), ElementsAre("model.layers.3.mlp*"));
  quantized.push_back("model.layers.3.mlp.shared_expert.up_proj");
  EXPECT_THAT(MakeExcludeList(kept, quantized), ElementsAre("model.layers.3.mlp.experts*", "model.layers.3.mlp.gate"));
}
TEST(ExcludeList, ATrapThatCannotBeAvoidedIsReported) {
  std::vector<std::string> kept = {"model.layers.0.mlp.gate"}, quantized = {"model.layers.0.mlp.gate_up_proj"};
  EXPECT_THAT(ExcludeListProblems(MakeExcludeList(kept, quantized), kept, quantized), ElementsAre(HasSubstr("vLLM will take the quantized model.layers.0.mlp.gate_up_proj for excluded")));
}
TEST(ExcludeList, TheThreeReaders) {
  EXPECT_TRUE(Excludes(ExcludeReader::kVllm, {"mlp.gate"}, "model.layers.0.mlp.gate_up_proj"));
  EXPECT_FALSE(Excludes(ExcludeReader::kSglang, {"model.layers.0.mlp.gate"}, "model.layers.0.mlp.gate_up_proj"));
  EXPECT_TRUE(Excludes(ExcludeReader::kSglang, {"gate"}, "model.layers.0.mlp.gate"));
  EXPECT_FALSE(Excludes(ExcludeReader::kTensorRtLlm, {"gate"}, "model.layers.0.mlp.gate"));
  EXPECT_TRUE(Excludes(ExcludeReader::kTensorRtLlm, {"model.layers.0.mlp"}, "model.layers.0.mlp.gate"));
  for (ExcludeReader reader : kReaders) EXPECT_TRUE(Excludes(reader, {"model.layers.1*"}, "model.layers.10.mlp.gate"));  // the trap of numbers
}

}  // namespace
}  // namespace halfbyte::checkpoint
