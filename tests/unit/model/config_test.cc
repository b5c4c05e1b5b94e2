// config.json as it is found in the wild: traps 1, 2, 3, 17 and 20 of model-families section 0, stop tokens, unknown families, unusable sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "checkpoint/model_folder.h"
#include "model/family.h"
#include "unit/model/tiny_model.h"

namespace halfbyte::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

base::Json Config(std::initializer_list<std::pair<const char*, base::Json>> changes = {}) {
  base::Json config = TinyModel({.layers = 4}).config;
  for (const auto& [key, value] : changes) config.Set(key, value);
  return config;
}
base::Json Without(base::Json config, std::string_view key) {
  std::erase_if(config.as_object(), [&](const base::Json::Member& m) { return m.first == key; });
  return config;
}
base::Result<ModelSpec> Spec(const base::Json& config, const base::Json& generation = {}, std::function<bool(std::string_view)> has_tensor = {}) {
  return ReadSpec(ConfigReader(config, generation, std::move(has_tensor)));
}

TEST(Config, ExpertCountsHaveThreeNames) {
  for (const char* name : {"num_experts", "num_local_experts", "n_routed_experts"}) {
    base::Json config = Without(Config(), "num_experts");
    config.Set(name, 6);
    const auto spec = Spec(config);
    ASSERT_TRUE(spec) << name << ": " << spec.error().ToString();
    EXPECT_EQ(spec->layers[0].moe->experts, 6) << name;
  }
  // The families whose releases use one name accept the others too.
  for (const char* type : {"qwen2_moe", "mixtral", "olmoe"})
    for (const char* name : {"num_experts", "num_local_experts", "n_routed_experts"}) {
      base::Json config = Without(Config({{"model_type", type}, {"shared_expert_intermediate_size", 16}}), "num_experts");
      config.Set(name, 6);
      const auto spec = Spec(config);
      ASSERT_TRUE(spec) << type << " " << name << ": " << spec.error().ToString();
      EXPECT_EQ(spec->layers[0].moe->experts, 6) << type << " " << name;
    }
}

TEST(Config, HeadDimIsNotHiddenOverHeads) {
  EXPECT_EQ(Spec(Config({{"head_dim", 64}}))->layers[0].attention.head_dim, 64);
  EXPECT_EQ(Spec(Without(Config(), "head_dim"))->layers[0].attention.head_dim, 16);      // 32 / 2
  EXPECT_EQ(Spec(Config({{"head_dim", base::Json()}}))->layers[0].attention.head_dim, 16);  // null is absent
  EXPECT_NEAR(Spec(Config({{"head_dim", 64}}))->layers[0].attention.scale, 0.125f, 1e-7);
}

TEST(Config, ExpertOrDenseIsDecidedByTheTensors) {
  // config.json says that layer 1 is dense and every second one at that; the files say that layer 2 is.
  const base::Json config = Config({{"mlp_only_layers", base::Json::Array{1}}, {"decoder_sparse_step", 2}});
  const auto by_tensors = Spec(config, {}, [](std::string_view name) { return name.find("layers.2.") == name.npos; });
  ASSERT_TRUE(by_tensors);
  std::vector<bool> moe;
  for (const LayerSpec& l : by_tensors->layers) moe.push_back(l.moe.has_value());
  EXPECT_THAT(moe, ElementsAre(true, true, false, true));
  for (const LayerSpec& l : by_tensors->layers) EXPECT_NE(l.moe.has_value(), l.dense.has_value());
  // Without tensors the fields are all there is: (layer + 1) % 2 == 0, and not layer 1.
  moe.clear();
  const auto by_fields = Spec(config);
  ASSERT_TRUE(by_fields);
  for (const LayerSpec& l : by_fields->layers) moe.push_back(l.moe.has_value());
  EXPECT_THAT(moe, ElementsAre(false, false, false, true));
}

TEST(Config, AnExpertLayerWithoutItsRouterIsNotTakenForADenseOne) {
  TinyModel m;
  m.Remove("model.layers.0.mlp.gate.weight");
  EXPECT_THAT(ErrorOf(Convert(m, Mode("none"))), HasSubstr("missing: model.layers.0.mlp.gate.weight"));
}

TEST(Config, OddFloatsAreRead) {
  for (const char* text : {R"({"a": Infinity, "b": NaN})", R"({"a": {"__float__": "Infinity"}, "b": {"__float__": "NaN"}})"}) {
    const auto json = checkpoint::ParseConfigJson(text);
    ASSERT_TRUE(json) << text;
    EXPECT_TRUE(std::isinf(json->Find("a")->as_double())) << text;
    EXPECT_TRUE(std::isnan(json->Find("b")->as_double())) << text;
  }
  TinyModel m;
  TemporaryFolder folder;
  m.Write(folder);
  std::string text = m.config.Dump();
  text.insert(1, R"("time_step_limit": [0.0, {"__float__": "Infinity"}], "other_limit": [0.0, Infinity], )");
  folder.Write("config.json", text);
  EXPECT_TRUE(Prepare(folder.path(), Mode("none"), "cpu"));
}

TEST(Config, StopTokensAreTheUnionOfBothFiles) {
  auto eos = [](const char* config, const char* generation) {
    base::Json c = Config({{"eos_token_id", *base::Json::Parse(config)}}), g = base::Json::MakeObject();
    if (*generation) g.Set("eos_token_id", *base::Json::Parse(generation));
    return Spec(c, g)->eos;
  };
  EXPECT_THAT(eos("2", ""), ElementsAre(2));
  EXPECT_THAT(eos("2", "[7, 5]"), ElementsAre(7, 5, 2));  // generation_config.json first
  EXPECT_THAT(eos("[2, 5]", "5"), ElementsAre(5, 2));
  EXPECT_THAT(eos("null", "5"), ElementsAre(5));
  EXPECT_THAT(eos("null", ""), ElementsAre());
  EXPECT_THAT(ErrorOf(Spec(Config({{"eos_token_id", "</s>"}}))), HasSubstr("eos_token_id"));
  EXPECT_THAT(ErrorOf(Spec(Config({{"eos_token_id", -1}}))), HasSubstr("eos_token_id"));
}

TEST(Config, FieldsOfAWrappedModelAreThoseOfItsTextConfig) {
  base::Json wrapped = base::Json::MakeObject(), text = Config();
  text.Set("tie_word_embeddings", base::Json());
  wrapped.Set("architectures", base::Json::Array{"SomethingForConditionalGeneration"});
  wrapped.Set("tie_word_embeddings", true);
  wrapped.Set("text_config", text);
  const auto spec = Spec(wrapped);
  ASSERT_TRUE(spec) << spec.error().ToString();
  EXPECT_EQ(spec->layers.size(), 4u);
  EXPECT_TRUE(spec->tied);
}

TEST(Config, UnknownFamiliesAreNamedWithTheKnownOnes) {
  EXPECT_THAT(ErrorOf(Spec(Config({{"model_type", "gemma9"}, {"architectures", base::Json::Array{"Gemma9ForCausalLM"}}}))),
              testing::AllOf(HasSubstr("unknown model family \"gemma9\""), HasSubstr("known: qwen3_moe, qwen2_moe, mixtral, olmoe, llama, qwen3")));
  EXPECT_THAT(ErrorOf(Spec(Without(Config({{"architectures", base::Json::Array{"Gemma9ForCausalLM"}}}), "model_type"))), HasSubstr("\"Gemma9ForCausalLM\""));
  // An unknown type of a known class is that class.
  EXPECT_TRUE(Spec(Config({{"model_type", "qwen3_moe_renamed"}})));
  EXPECT_THAT(ErrorOf(Spec(base::Json::MakeObject())), HasSubstr("config.json"));
}

TEST(Config, UnusableSizesAreErrorsThatNameTheField) {
  for (auto [key, value] : std::initializer_list<std::pair<const char*, base::Json>>{{"hidden_size", 0}, {"hidden_size", -32}, {"hidden_size", "32"}, {"hidden_size", 3.5}, {"vocab_size", base::Json()},
           {"num_hidden_layers", 1 << 20}, {"num_attention_heads", 0}, {"num_experts", int64_t{1} << 40}, {"moe_intermediate_size", base::Json::Array{}}, {"num_experts_per_tok", 0}, {"num_experts_per_tok", 3}})
    EXPECT_THAT(ErrorOf(Spec(Config({{key, value}}))), testing::AllOf(HasSubstr("config.json"), HasSubstr(key))) << value.Dump();
  EXPECT_THAT(ErrorOf(Spec(Config({{"num_key_value_heads", 3}}))), HasSubstr("3 key heads"));
  EXPECT_THAT(ErrorOf(Spec(Config({{"head_dim", 15}}))), HasSubstr("of 15"));
  EXPECT_THAT(ErrorOf(Spec(Config({{"hidden_act", "gelu"}}))), HasSubstr("gelu"));
}

TEST(Config, SlidingWindows) {
  auto windows = [](const char* type, std::initializer_list<std::pair<const char*, base::Json>> changes) {
    base::Json config = Config({{"model_type", type}, {"shared_expert_intermediate_size", 16}, {"sliding_window", 64}, {"max_window_layers", 2}});
    for (const auto& [key, value] : changes) config.Set(key, value);
    const auto spec = Spec(config);
    EXPECT_TRUE(spec) << type << ": " << spec.error().ToString();
    std::vector<int64_t> out;
    if (spec) for (const LayerSpec& l : spec->layers) out.push_back(l.attention.window);
    return out;
  };
  const base::Json types = base::Json::Array{"sliding_attention", "full_attention", "full_attention", "sliding_attention"};
  for (const char* type : {"qwen3_moe", "qwen2_moe", "qwen3", "qwen2", "llama"}) EXPECT_THAT(windows(type, {}), ElementsAre(0, 0, 0, 0)) << type;  // said, not used
  EXPECT_THAT(windows("qwen3_moe", {{"use_sliding_window", true}}), ElementsAre(64, 64, 64, 64));
  EXPECT_THAT(windows("qwen2_moe", {{"use_sliding_window", true}}), ElementsAre(64, 0, 0, 0));
  EXPECT_THAT(windows("qwen3", {{"use_sliding_window", true}}), ElementsAre(0, 0, 64, 64));
  EXPECT_THAT(windows("qwen2", {{"use_sliding_window", true}, {"layer_types", types}}), ElementsAre(64, 0, 0, 64));
  EXPECT_THAT(windows("mixtral", {}), ElementsAre(64, 64, 64, 64));
  EXPECT_THAT(ErrorOf(Spec(Config({{"use_sliding_window", true}, {"layer_types", base::Json::Array{}}}))), HasSubstr("layer_types"));
  for (const char* type : {"mixtral", "qwen3_moe"}) EXPECT_THAT(ErrorOf(Spec(Config({{"model_type", type}, {"sliding_window", -1}}))), HasSubstr("sliding_window"));
}

TEST(Config, FamilyDefaultsWhereTheFileIsSilent) {
  EXPECT_FALSE(Spec(Without(Config(), "norm_topk_prob"))->layers[0].moe->normalize);               // Qwen3-MoE's class default
  EXPECT_TRUE(Spec(Without(Config({{"model_type", "mixtral"}}), "norm_topk_prob"))->layers[0].moe->normalize);  // always
  EXPECT_TRUE(Spec(Config({{"model_type", "qwen2_moe"}, {"shared_expert_intermediate_size", 16}}))->layers[0].attention.qkv_bias);
  EXPECT_EQ(Spec(Config({{"model_type", "mixtral"}, {"sliding_window", base::Json()}}))->layers[0].attention.window, 0);
  EXPECT_EQ(Spec(Config({{"model_type", "mixtral"}, {"sliding_window", 4096}}))->layers[0].attention.window, 4096);
  EXPECT_EQ(Spec(Config({{"model_type", "llama"}}))->layers[0].dense->f, 64);
  // transformers' classes: rms_norm_eps and rope_theta.
  for (auto [type, eps, theta] : {std::tuple{"qwen3_moe", 1e-6f, 1e4}, {"llama", 1e-6f, 1e4}, {"olmoe", 1e-5f, 1e4}, {"mixtral", 1e-5f, 1e6}}) {
    const auto spec = Spec(Without(Without(Config({{"model_type", type}}), "rms_norm_eps"), "rope_theta"));
    EXPECT_EQ(spec->norm_eps, eps) << type;
    EXPECT_FLOAT_EQ(spec->rope.inv_freq[1], static_cast<float>(std::pow(theta, -2.0 / static_cast<double>(spec->rope.dims)))) << type;
  }
  EXPECT_FALSE(Spec(Config({{"model_type", "llama"}}))->has_experts());
}

}  // namespace
}  // namespace halfbyte::model
