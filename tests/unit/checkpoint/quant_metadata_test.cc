// Every dialect, both ModelOpt files together, and what happens when a key is absent, null or of a wrong type (user cases needs 3 and 21).
#include "checkpoint/quant_metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "checkpoint/checkpoint.h"
#include "unit/checkpoint/test_files.h"

namespace halfbyte::checkpoint {
namespace {

namespace fs = std::filesystem;
using base::Json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Json Parse(const std::string& text) {
  auto v = Json::Parse(text);
  EXPECT_TRUE(v) << v.error().ToString() << "\n" << text;
  return v ? *v : Json();
}
QuantMetadata Read(const std::string& section, const std::string& file = "null") {
  Json quant_file = Parse(file);
  auto m = ReadQuantMetadata(Parse(R"({"model_type":"qwen3_moe","quantization_config":)" + section + "}"), &quant_file);
  EXPECT_TRUE(m) << m.error().ToString();
  return m ? *m : QuantMetadata();
}
std::string ErrorOf(const std::string& section, const std::string& file = "null") {
  Json quant_file = Parse(file);
  auto m = ReadQuantMetadata(Parse(R"({"quantization_config":)" + section + "}"), &quant_file);
  return m ? "read" : m.error().ToString();
}
QuantMetadata OfFolder(const std::string& folder) {
  auto c = Checkpoint::Open(SharedReference() / folder);
  EXPECT_TRUE(c) << c.error().ToString();
  auto m = ReadQuantMetadata(c->config(), &c->hf_quant_config());
  EXPECT_TRUE(m) << m.error().ToString();
  EXPECT_THAT(m->warnings, IsEmpty());
  return *m;
}

TEST(QuantMetadata, RealProducersFiles) {
  HB_NEED_SHARED_REFERENCE();
  struct Row { const char* folder; QuantDialect dialect; QuantAlgo algo; int group; bool weight_only; int activations; size_t excludes; const char* origin; };
  const Row rows[] = {
      {"producers/source-bf16", QuantDialect::kNone, QuantAlgo::kNone, 0, false, 0, 0, ""},
      {"producers/modelopt-nvfp4-experts", QuantDialect::kModelOpt, QuantAlgo::kNvfp4, 16, false, 4, 6, "config.json ignore"},
      {"producers/modelopt-nvfp4-all", QuantDialect::kModelOpt, QuantAlgo::kNvfp4, 16, false, 4, 4, "config.json ignore"},
      {"producers/modelopt-w4a16", QuantDialect::kModelOpt, QuantAlgo::kNvfp4, 16, true, 0, 4, "config.json ignore"},
      {"producers/modelopt-fp8", QuantDialect::kModelOpt, QuantAlgo::kFp8Tensor, 0, false, 8, 4, "config.json ignore"},
      {"producers/ct-nvfp4", QuantDialect::kCompressedTensors, QuantAlgo::kNvfp4, 16, false, 4, 3, "config.json ignore"},
      {"producers/ct-nvfp4a16", QuantDialect::kCompressedTensors, QuantAlgo::kNvfp4, 16, true, 0, 3, "config.json ignore"},
      {"producers/ct-fp8-dynamic", QuantDialect::kCompressedTensors, QuantAlgo::kFp8Channel, 0, false, 8, 3, "config.json ignore"},
      {"producers/ct-fp8-block", QuantDialect::kCompressedTensors, QuantAlgo::kFp8Block, 0, false, 8, 3, "config.json ignore"},
      {"models/mixtral-fp8-block", QuantDialect::kFp8, QuantAlgo::kFp8Block, 0, false, 8, 2, "config.json modules_to_not_convert"},
      {"models/mixtral-fp8-channel", QuantDialect::kCompressedTensors, QuantAlgo::kFp8Channel, 0, false, 8, 2, "config.json ignore"},
      {"models/mixtral-fp8-tensor", QuantDialect::kModelOpt, QuantAlgo::kFp8Tensor, 0, false, 8, 2, "config.json ignore"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.folder);
    QuantMetadata m = OfFolder(row.folder);
    EXPECT_EQ(m.dialect, row.dialect);
    EXPECT_EQ(m.main.algo, row.algo) << m.main.label;
    EXPECT_EQ(m.main.group_size, row.group);
    EXPECT_EQ(m.main.weight_only, row.weight_only);
    EXPECT_EQ(m.main.activation_bits, row.activations);
    EXPECT_EQ(m.excludes.size(), row.excludes);
    EXPECT_EQ(m.excludes_origin, row.origin);
    EXPECT_EQ(m.kv_cache, KvCacheAlgo::kNone);
  }
  EXPECT_THAT(OfFolder("models/mixtral-fp8-block").main.block, ElementsAre(32, 32));
  EXPECT_THAT(OfFolder("producers/ct-fp8-block").main.block, ElementsAre(128, 128));
  EXPECT_EQ(OfFolder("producers/modelopt-fp8").producer, "modelopt 0.47.0");
  EXPECT_EQ(OfFolder("producers/ct-nvfp4").producer, "compressed-tensors 0.19.0");
}

TEST(QuantMetadata, NothingQuantized) {
  EXPECT_EQ(ReadQuantMetadata(Parse("{}"), nullptr)->dialect, QuantDialect::kNone);
  EXPECT_EQ(Read("null").dialect, QuantDialect::kNone);
  EXPECT_EQ(Read("{}").dialect, QuantDialect::kNone);
  EXPECT_EQ(Read("null", R"({"producer":{"name":"modelopt"},"quantization":{"quant_algo":null}})").dialect, QuantDialect::kNone);
  EXPECT_EQ(Read("null", "{}").dialect, QuantDialect::kNone);
}

TEST(QuantMetadata, Fp8Blocks) {
  QuantMetadata m = Read(R"({"quant_method":"fp8","fmt":"e4m3","weight_block_size":[128,64],"activation_scheme":"dynamic","scale_fmt":"ue8m0","modules_to_not_convert":["lm_head"]})");
  EXPECT_EQ(m.dialect, QuantDialect::kFp8);
  EXPECT_EQ(m.main.algo, QuantAlgo::kFp8Block);
  EXPECT_THAT(m.main.block, ElementsAre(128, 64));
  EXPECT_TRUE(m.scales_are_powers_of_two);
  EXPECT_THAT(m.excludes, ElementsAre("lm_head"));
  EXPECT_EQ(Read(R"({"quant_method":"fp8"})").main.algo, QuantAlgo::kFp8Tensor);
  EXPECT_EQ(Read(R"({"weight_block_size":[128,128]})").main.algo, QuantAlgo::kFp8Block);
  EXPECT_EQ(Read(R"({"quant_method":"fbgemm_fp8"})").main.algo, QuantAlgo::kFp8Channel);
}

TEST(QuantMetadata, ModelOptWords) {
  auto algo = [](const std::string& word) { return Read(R"({"quant_method":"modelopt","quant_algo":")" + word + "\"}"); };
  for (const char* word : {"W4A16_NVFP4", "NVFP4_W4A16"}) {
    EXPECT_EQ(algo(word).main.algo, QuantAlgo::kNvfp4) << word;
    EXPECT_TRUE(algo(word).main.weight_only) << word;
    EXPECT_EQ(algo(word).main.group_size, 16) << word;
  }
  EXPECT_TRUE(algo("NVFP4_AWQ").main.pre_quant_scale);
  EXPECT_FALSE(algo("NVFP4").main.weight_only);
  EXPECT_EQ(algo("FP8_PER_CHANNEL_PER_TOKEN").main.algo, QuantAlgo::kFp8Channel);
  EXPECT_EQ(algo("fp8_pb_wo").main.algo, QuantAlgo::kFp8Block);
  EXPECT_EQ(algo("MXFP8").main.algo, QuantAlgo::kMxfp8);
  EXPECT_EQ(algo("W4A8_MXFP4_FP8").main.algo, QuantAlgo::kMxfp4);
  EXPECT_EQ(algo("W4A8_NVFP4_FP8").main.activation_bits, 8);
  QuantMetadata unknown = algo("W8A8_SQ_PER_CHANNEL");
  EXPECT_EQ(unknown.main.algo, QuantAlgo::kOther);
  EXPECT_THAT(unknown.warnings, ElementsAre(HasSubstr("\"W8A8_SQ_PER_CHANNEL\" is not known; the tensors decide")));
  // The method's name may carry the algorithm, and may be missing.
  EXPECT_EQ(Read(R"({"quant_method":"modelopt_fp4","quant_algo":"NVFP4"})").dialect, QuantDialect::kModelOpt);
  EXPECT_EQ(Read(R"({"quant_algo":"NVFP4"})").dialect, QuantDialect::kModelOpt);
}

TEST(QuantMetadata, WeightOnlyWhereEveryGroupSaysSo) {  // user case T02b
  const std::string weights = R"("weights":{"num_bits":4,"type":"float","group_size":16})";
  EXPECT_TRUE(Read(R"({"quant_method":"modelopt","quant_algo":"NVFP4","config_groups":{"group_0":{"input_activations":null,)" + weights + "}}}").main.weight_only);
  EXPECT_FALSE(Read(R"({"quant_method":"modelopt","quant_algo":"NVFP4","config_groups":{"group_0":{"input_activations":{"num_bits":4},)" + weights + "}}}").main.weight_only);
  EXPECT_FALSE(Read(R"({"quant_method":"modelopt","quant_algo":"NVFP4","config_groups":{"a":{"input_activations":null,)" + weights + R"(},"b":{"input_activations":{"num_bits":4},)" + weights + "}}}").main.weight_only);
}

TEST(QuantMetadata, GroupSizeFromEveryPlace) {
  auto group = [](const std::string& rest) { return Read(R"({"quant_method":"modelopt","quant_algo":"NVFP4")" + rest + "}"); };
  EXPECT_EQ(group("").main.group_size, 16);
  EXPECT_EQ(group(R"(,"group_size":32)").main.group_size, 32);
  EXPECT_EQ(group(R"(,"config_groups":{"group_0":{"weights":{"num_bits":4,"type":"float","group_size":32}}})").main.group_size, 32);
  QuantMetadata two = group(R"(,"group_size":16,"config_groups":{"group_0":{"weights":{"num_bits":4,"type":"float","group_size":32}}})");
  EXPECT_THAT(two.warnings, ElementsAre(HasSubstr("group sizes 16 and 32")));
  EXPECT_EQ(Read("null", R"({"quantization":{"quant_algo":"NVFP4","group_size":32}})").main.group_size, 32);
  // NVFP4_AWQ's own description of its group is wrong in released files.
  EXPECT_EQ(Read(R"({"quant_method":"modelopt","quant_algo":"NVFP4_AWQ","config_groups":{"group_0":{"weights":{"num_bits":4,"type":"int","group_size":128}}}})").main.group_size, 16);
}

TEST(QuantMetadata, KvCache) {
  auto kv = [](const std::string& text) { return Read(R"({"quant_method":"modelopt","quant_algo":"NVFP4",)" + text + "}"); };
  EXPECT_EQ(kv(R"("kv_cache_scheme":{"dynamic":false,"num_bits":8,"type":"float"})").kv_cache, KvCacheAlgo::kFp8);
  EXPECT_EQ(kv(R"("kv_cache_scheme":{"num_bits":4,"type":"float"})").kv_cache, KvCacheAlgo::kNvfp4);
  EXPECT_EQ(kv(R"("kv_cache_scheme":"NVFP4")").kv_cache, KvCacheAlgo::kNvfp4);
  EXPECT_EQ(kv(R"("kv_cache_scheme":"fp8")").kv_cache, KvCacheAlgo::kFp8);
  EXPECT_EQ(kv(R"("kv_cache_scheme":"auto")").kv_cache, KvCacheAlgo::kNone);
  EXPECT_EQ(kv(R"("kv_cache_quant_algo":"FP8")").kv_cache, KvCacheAlgo::kFp8);
  EXPECT_EQ(kv(R"("kv_cache_quant_algo":null)").kv_cache, KvCacheAlgo::kNone);
  EXPECT_THAT(kv(R"("kv_cache_quant_algo":"INT8")").warnings, ElementsAre(HasSubstr("\"INT8\" is not known")));
  EXPECT_THAT(kv(R"("kv_cache_scheme":{"num_bits":8,"type":"int"})").warnings, ElementsAre(HasSubstr("not known")));
}

TEST(QuantMetadata, ExcludesTakeTheFirstKeyThatSaysSomething) {
  auto excludes = [](const std::string& text) { return Read(R"({"quant_method":"fp8",)" + text + "}"); };
  EXPECT_THAT(excludes(R"("ignore":["a"],"ignored_layers":["b"])").excludes, ElementsAre("a"));
  EXPECT_THAT(excludes(R"("ignore":[],"ignored_layers":["b"])").excludes, ElementsAre("b"));
  EXPECT_THAT(excludes(R"("ignore":null,"modules_to_not_convert":"c")").excludes, ElementsAre("c"));
  EXPECT_EQ(excludes(R"("exclude_modules":["d"])").excludes_origin, "config.json exclude_modules");
}

TEST(QuantMetadata, TheNestedFileAlone) {
  QuantMetadata m = Read("null", R"({"producer":{"name":"modelopt","version":"0.29"},"quantization":{"quant_algo":"NVFP4","kv_cache_quant_algo":"FP8","group_size":16,"exclude_modules":["lm_head","model.layers.0.self_attn*"]}})");
  EXPECT_EQ(m.dialect, QuantDialect::kModelOpt);
  EXPECT_EQ(m.origin, "hf_quant_config.json");
  EXPECT_EQ(m.kv_cache, KvCacheAlgo::kFp8);
  EXPECT_EQ(m.excludes_origin, "hf_quant_config.json exclude_modules");
  EXPECT_EQ(m.excludes.size(), 2u);
  EXPECT_EQ(m.producer, "modelopt 0.29");
}

TEST(QuantMetadata, BothFilesAgree) {
  QuantMetadata m = Read(R"({"quant_method":"modelopt","quant_algo":"NVFP4","ignore":["b","a"]})", R"({"quantization":{"quant_algo":"NVFP4","exclude_modules":["a","b"],"kv_cache_quant_algo":"FP8","group_size":16}})");
  EXPECT_THAT(m.warnings, IsEmpty());
  EXPECT_EQ(m.kv_cache, KvCacheAlgo::kFp8);  // only the file speaks of it
  EXPECT_THAT(m.excludes, ElementsAre("b", "a"));
}
TEST(QuantMetadata, BothFilesDisagreeAndTheInlineSectionWins) {
  QuantMetadata m = Read(R"({"quant_method":"modelopt","quant_algo":"NVFP4","ignore":["a"],"kv_cache_scheme":null})",
                         R"({"quantization":{"quant_algo":"FP8","exclude_modules":["a","b"],"kv_cache_quant_algo":"FP8"}})");
  EXPECT_EQ(m.main.algo, QuantAlgo::kNvfp4);
  EXPECT_EQ(m.kv_cache, KvCacheAlgo::kNone);
  EXPECT_THAT(m.excludes, ElementsAre("a"));
  EXPECT_THAT(m.warnings, ElementsAre("config.json and hf_quant_config.json disagree about the algorithm (NVFP4 and FP8), the KV cache and the excluded modules (1 and 2 patterns); config.json counts"));
}

TEST(QuantMetadata, MixedPrecision) {
  const std::string layers = R"({"model.layers.0.mlp.experts":{"quant_algo":"NVFP4","group_size":16},"model.language_model.layers.0.self_attn.q_proj":{"quant_algo":"FP8"},"lm_head":{"quant_algo":"W4A16_NVFP4","group_size":32},"x":null})";
  for (const QuantMetadata& m : {Read(R"({"quant_method":"modelopt","quant_algo":"MIXED_PRECISION","quantized_layers":)" + layers + "}"),
                                 Read(R"({"quant_method":"modelopt","quant_algo":"MIXED_PRECISION"})", R"({"quantization":{"quant_algo":"MIXED_PRECISION","quantized_layers":)" + layers + "}}"),
                                 Read("null", R"({"quantization":{"quant_algo":"MIXED_PRECISION","quantized_layers":)" + layers + "}}")}) {
    EXPECT_EQ(m.main.algo, QuantAlgo::kNone);
    EXPECT_THAT(m.warnings, IsEmpty());
    ASSERT_EQ(m.layers.size(), 3u);
    EXPECT_EQ(m.FindLayer("model.layers.0.self_attn.q_proj")->algo, QuantAlgo::kFp8Tensor);
    EXPECT_EQ(m.FindLayer("model.language_model.layers.0.mlp.experts")->algo, QuantAlgo::kNvfp4);
    EXPECT_EQ(m.FindLayer("model.layers.0.self_attn")->algo, QuantAlgo::kFp8Tensor);  // the first below it
    EXPECT_EQ(m.FindLayer("lm_head")->group_size, 32);
    EXPECT_EQ(m.FindLayer("model.layers.0.self_attn.k_proj"), nullptr);
    EXPECT_EQ(m.FindLayer("model.layers.0.mlp.exp"), nullptr);
  }
  EXPECT_THAT(Read(R"({"quant_method":"modelopt","quant_algo":"MIXED_PRECISION","quantized_layers":null})").warnings, ElementsAre(HasSubstr("the tensors decide")));
  QuantMetadata by_groups = Read(R"({"quant_method":"modelopt","quant_algo":"MIXED_PRECISION","config_groups":{"group_0":{"targets":["model.layers.1.mlp.down_proj"],"weights":{"num_bits":4,"type":"float","group_size":16}}}})");
  EXPECT_EQ(by_groups.FindLayer("model.layers.1.mlp.down_proj")->algo, QuantAlgo::kNvfp4);
}

TEST(QuantMetadata, HybridFp8WithNvfp4Experts) {
  QuantMetadata m = Read(R"({"quant_method":"fp8","quant_algo":"MIXED_PRECISION","moe_quant_algo":"NVFP4","group_size":16,"weight_block_size":[128,128],"ignore":["model.mtp*"]})");
  EXPECT_EQ(m.dialect, QuantDialect::kFp8);
  EXPECT_EQ(m.main.algo, QuantAlgo::kFp8Block);
  ASSERT_TRUE(m.experts);
  EXPECT_EQ(m.experts->algo, QuantAlgo::kNvfp4);
}

TEST(QuantMetadata, CompressedTensorsForms) {
  EXPECT_EQ(Read(R"({"quant_method":"compressed-tensors","format":"nvfp4-pack-quantized"})").main.algo, QuantAlgo::kNvfp4);  // the format alone
  EXPECT_EQ(Read(R"({"quant_method":"compressed-tensors","format":"mxfp4-pack-quantized"})").main.algo, QuantAlgo::kMxfp4);
  EXPECT_EQ(Read(R"({"quant_method":"compressed-tensors","format":"float-quantized"})").main.algo, QuantAlgo::kFp8Tensor);
  auto group = [](const std::string& g) { return Read(R"({"quant_method":"compressed-tensors","config_groups":{"group_0":)" + g + "}}").main; };
  EXPECT_EQ(group(R"({"targets":["Linear"],"weights":{"num_bits":4,"type":"float","group_size":32}})").algo, QuantAlgo::kMxfp4);
  EXPECT_EQ(group(R"({"targets":["Linear"],"weights":{"num_bits":8,"type":"float","strategy":"tensor"}})").algo, QuantAlgo::kFp8Tensor);
  LayerQuant int4 = group(R"({"format":"pack-quantized","targets":["Linear"],"weights":{"num_bits":4,"type":"int","strategy":"group","group_size":32}})");
  EXPECT_EQ(int4.algo, QuantAlgo::kOther);
  EXPECT_EQ(int4.label, "pack-quantized");
  QuantMetadata two = Read(R"({"quant_method":"compressed-tensors","config_groups":{"group_0":{"targets":["re:.*experts.*"],"weights":{"num_bits":4,"type":"float","group_size":16}},"group_1":{"targets":["Linear"],"weights":{"num_bits":8,"type":"float","strategy":"channel"}}}})");
  EXPECT_EQ(two.main.algo, QuantAlgo::kFp8Channel);
  ASSERT_EQ(two.groups.size(), 2u);
  EXPECT_EQ(two.groups[0].quant.algo, QuantAlgo::kNvfp4);
}

TEST(QuantMetadata, Mxfp4AndTextConfig) {
  QuantMetadata m = Read(R"({"quant_method":"mxfp4","modules_to_not_convert":["lm_head"]})");
  EXPECT_EQ(m.dialect, QuantDialect::kMxfp4);
  EXPECT_EQ(m.main.group_size, 32);
  auto nested = ReadQuantMetadata(Parse(R"({"text_config":{"quantization_config":{"quant_method":"fp8"}}})"), nullptr);
  EXPECT_EQ(nested->dialect, QuantDialect::kFp8);
}

TEST(QuantMetadata, UnknownMethodsAreRefusedByName) {
  EXPECT_THAT(ErrorOf(R"({"quant_method":"gptq","bits":4})"), AllOf(HasSubstr("quant_method \"gptq\" is not read"), HasSubstr("read are fp8, modelopt")));
}

// Every member at any depth is removed, nulled, and replaced by each other type; the reader must answer, and an error must say the key.
void Mutate(const Json& config, const std::function<void(const Json&, const std::string&)>& check) {
  std::function<void(Json&, Json&, const std::string&)> walk = [&](Json& root, Json& node, const std::string& path) {
    if (node.is_object()) {
      for (size_t i = 0; i < node.as_object().size(); ++i) {
        Json kept = node.as_object()[i].second;
        std::string key = node.as_object()[i].first, where = path + "." + key;
        for (const Json& other : {Json(), Json(true), Json(-3), Json(1.5), Json("word"), Json("re:("), Json(Json::Array{Json(1), Json("x")}), Json(Json::Object{{"a", Json(1)}}), Json(INT64_MAX)}) {
          node.as_object()[i].second = other;
          check(root, where);
        }
        node.as_object()[i].second = kept;
        Json::Object members = node.as_object();
        node.as_object().erase(node.as_object().begin() + static_cast<ptrdiff_t>(i));
        check(root, where + " removed");
        node.as_object() = members;
        walk(root, node.as_object()[i].second, where);
      }
    } else if (node.is_array()) {
      for (size_t i = 0; i < node.as_array().size(); ++i) {
        Json kept = node.as_array()[i];
        for (const Json& other : {Json(), Json(true), Json(-3), Json("word"), Json(Json::Array{})}) { node.as_array()[i] = other; check(root, path + "[]"); }
        node.as_array()[i] = kept;
      }
    }
  };
  Json root = config;
  walk(root, root, "");
}

TEST(QuantMetadata, EveryKeyAbsentNullOrOfAWrongTypeGivesAnAnswer) {
  const std::string sections[] = {
      R"({"quant_method":"fp8","fmt":"e4m3","weight_block_size":[128,128],"activation_scheme":"dynamic","scale_fmt":"ue8m0","modules_to_not_convert":["a"],"moe_quant_algo":"NVFP4","group_size":16,"quantized_layers":{"l":{"quant_algo":"NVFP4","group_size":16}}})",
      R"({"quant_method":"modelopt","quant_algo":"MIXED_PRECISION","group_size":16,"config_groups":{"group_0":{"input_activations":{"dynamic":false,"num_bits":4,"type":"float","group_size":16},"weights":{"dynamic":false,"num_bits":4,"type":"float","group_size":16},"targets":["Linear"]}},"ignore":["a","b*"],"kv_cache_scheme":{"dynamic":false,"num_bits":8,"type":"float"},"producer":{"name":"modelopt","version":"1"},"quantized_layers":{"l":{"quant_algo":"FP8_PB_WO","group_size":16,"weight_block_size":[1,2]}}})",
      R"({"quant_method":"compressed-tensors","format":"nvfp4-pack-quantized","version":"1","config_groups":{"group_0":{"format":"float-quantized","targets":["Linear"],"weights":{"num_bits":8,"type":"float","strategy":"block","group_size":null,"block_structure":[128,128]},"input_activations":{"num_bits":4}}},"ignore":["a"],"kv_cache_scheme":null})",
  };
  int answers = 0;
  for (const std::string& section : sections) {
    Mutate(Parse(section), [&](const Json& mutated, const std::string& where) {
      Json config;
      config.Set("quantization_config", mutated);
      auto m = ReadQuantMetadata(config, nullptr);
      ++answers;
      if (!m) { EXPECT_THAT(m.error().ToString(), HasSubstr("quantization_config: ")) << where; }
      if (!m) { EXPECT_GT(m.error().message().size(), 10u) << where; }
      Json file;
      file.Set("quantization", mutated);
      auto n = ReadQuantMetadata(Json::MakeObject(), &file);
      if (!n) { EXPECT_THAT(n.error().ToString(), HasSubstr("hf_quant_config.json: ")) << where; }
    });
  }
  EXPECT_GT(answers, 500);
}
TEST(QuantMetadata, WrongTypesNameTheKey) {
  EXPECT_THAT(ErrorOf("3"), HasSubstr("\"quantization_config\" is of type integer"));
  EXPECT_THAT(ErrorOf(R"({"quant_method":7})"), HasSubstr("\"quant_method\" is of type integer"));
  EXPECT_THAT(ErrorOf(R"({"quant_method":"fp8","weight_block_size":[128]})"), HasSubstr("\"weight_block_size\" must be [rows, columns]"));
  EXPECT_THAT(ErrorOf(R"({"quant_method":"fp8","weight_block_size":[128,0]})"), HasSubstr("two positive integers"));
  EXPECT_THAT(ErrorOf(R"({"quant_method":"fp8","ignore":{"a":1}})"), HasSubstr("\"ignore\" is of type object"));
  EXPECT_THAT(ErrorOf(R"({"quant_method":"fp8","ignore":["a",5]})"), HasSubstr("\"ignore[1]\" is of type integer"));
  EXPECT_THAT(ErrorOf(R"({"quant_method":"modelopt","quant_algo":"NVFP4","config_groups":[]})"), HasSubstr("\"config_groups\" is of type array"));
  EXPECT_THAT(ErrorOf(R"({"quant_method":"modelopt","quant_algo":"NVFP4","config_groups":{"g":{"weights":4}}})"), HasSubstr("config_groups.g: \"weights\" is of type integer"));
  EXPECT_THAT(ErrorOf("null", "[]"), HasSubstr("hf_quant_config.json"));
  EXPECT_THAT(ErrorOf("null", R"({"quantization":"NVFP4"})"), HasSubstr("\"quantization\" is of type string"));
}

}  // namespace
}  // namespace halfbyte::checkpoint
