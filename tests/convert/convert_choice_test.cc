// What is converted and what is not: exclude lists, dense layers, models without experts; and what the new configuration says about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/exclude_list.h"
#include "checkpoint/quant_metadata.h"
#include "convert/convert_support.h"

namespace halfbyte::test {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class ConvertChoice : public testing::Test {
 protected:
  void Write(const TinyModel& m, const char* to = "in") {
    fs::create_directories(t_.path() / to);
    t_.Write(fs::path(to) / "config.json", m.config.Dump());
    t_.Write(fs::path(to) / "model.safetensors", checkpoint::SafetensorsBytes(m.tensors));
  }
  // Converts in -> out anew.
  quant::ExportStats Convert(const quant::ExportOptions& options) {
    fs::remove_all(out());
    return MustQuantize(in(), out(), options);
  }
  std::string Dtype(const std::string& name) { return ReadFolder(out()).at(name).dtype; }
  checkpoint::QuantMetadata Metadata() {
    const base::Json file = fs::exists(out() / "hf_quant_config.json") ? FileJson(out() / "hf_quant_config.json") : base::Json();
    auto m = checkpoint::ReadQuantMetadata(FileJson(out() / "config.json"), &file);
    EXPECT_TRUE(m) << m.error().ToString();
    return *m;
  }
  fs::path in() const { return t_.path() / "in"; }
  fs::path out() const { return t_.path() / "out"; }
  TemporaryFolder t_;
};

std::string Expert(int layer, int expert, const char* part) { return base::StrCat("model.layers.", layer, ".mlp.experts.", expert, ".", part, "_proj"); }

TEST_F(ConvertChoice, ExcludedModulesStayAndAreListed) {
  Write(TinyModel({.layers = 3}));
  quant::ExportOptions options = Modelopt();
  options.excluded = Excluding({"re:.*layers\\.1\\.mlp\\.experts.*", "model.layers.2.mlp.experts.1.down_proj", "nothing.like.this"});
  const auto stats = Convert(options);
  // One expert of a layer in a list means all of that layer's, as everywhere.
  EXPECT_EQ(stats.converted, 6);
  EXPECT_EQ(Dtype(Expert(0, 1, "down") + ".weight"), "U8");
  for (int layer : {1, 2}) EXPECT_EQ(Dtype(Expert(layer, 0, "gate") + ".weight"), "BF16");
  EXPECT_THAT(stats.warnings, Contains(HasSubstr("pattern \"nothing.like.this\" of --exclude matches nothing")));
  const auto metadata = Metadata();
  for (auto reader : {checkpoint::ExcludeReader::kVllm, checkpoint::ExcludeReader::kSglang, checkpoint::ExcludeReader::kTensorRtLlm}) {
    EXPECT_TRUE(checkpoint::Excludes(reader, metadata.excludes, Expert(2, 1, "up")));
    EXPECT_TRUE(checkpoint::Excludes(reader, metadata.excludes, Expert(1, 0, "gate")));
    EXPECT_FALSE(checkpoint::Excludes(reader, metadata.excludes, Expert(0, 0, "gate")));
  }
  EXPECT_FALSE(Logits(out(), model::Mode("modelopt_fp4"), {1, 2, 3}).empty());
}

// Gate and up are one matrix in every server's kernels: a pattern that names one of them keeps both, and a warning says so.
TEST_F(ConvertChoice, OneHalfOfAPairKeepsTheOther) {
  Write(TinyModel());
  quant::ExportOptions options = Modelopt();
  options.excluded = Excluding({"*.up_proj"});
  const auto stats = Convert(options);
  EXPECT_EQ(stats.converted, 2);
  EXPECT_EQ(Dtype(Expert(0, 0, "up") + ".weight"), "BF16");
  EXPECT_EQ(Dtype(Expert(0, 0, "gate") + ".weight"), "BF16");
  EXPECT_EQ(Dtype(Expert(0, 0, "down") + ".weight"), "U8");
  EXPECT_THAT(stats.warnings, Contains(HasSubstr("2 gate or up matrices stay as they are because a list names their partner")));
}

TEST_F(ConvertChoice, IgnoreLayersKnowsPathsOnly) {
  Write(TinyModel({.layers = 2}));
  quant::ExportOptions options = Modelopt();
  options.ignored = *quant::LayerSelection::Make({"model.layers.1"}, "--ignore-layers", quant::PatternSyntax::kPaths);
  EXPECT_EQ(Convert(options).converted, 6);
  EXPECT_EQ(Dtype(Expert(1, 0, "up") + ".weight"), "BF16");
}

// Experts that the source's list names: a loader of modelopt_fp4 leaves them, one of the other modes converts them; each contract does as its loader.
TEST_F(ConvertChoice, TheSourcesOwnListCountsForModeloptOnly) {
  TinyModel m({.layers = 2});
  m.config.Set("quantization_config", *base::Json::Parse(R"({"quant_method": "fp8", "activation_scheme": "dynamic", "modules_to_not_convert": ["model.layers.1.mlp.experts", "lm_head"]})"));
  Write(m);
  EXPECT_EQ(Convert(Modelopt()).converted, 6);
  EXPECT_EQ(Dtype(Expert(1, 0, "up") + ".weight"), "BF16");
  const auto stats = Convert(Online());
  EXPECT_EQ(stats.converted, 12);
  EXPECT_THAT(stats.warnings, Contains(HasSubstr("6 expert matrices that the checkpoint's exclude list names are converted")));
}

TEST_F(ConvertChoice, DenseLayersOnRequest) {
  Write(TinyModel());
  quant::ExportOptions options = Modelopt();
  options.dense = true;
  options.excluded = Excluding({"*.o_proj"});
  EXPECT_EQ(Convert(options).converted, 6 + 3);
  const GoldenFile out_file = ReadFolder(out());
  const std::string attention = "model.layers.0.self_attn.";
  EXPECT_EQ(out_file.at(attention + "q_proj.weight_scale_2").bytes, out_file.at(attention + "k_proj.weight_scale_2").bytes);
  EXPECT_EQ(out_file.at(attention + "q_proj.weight_scale_2").bytes, out_file.at(attention + "v_proj.weight_scale_2").bytes);
  for (const char* kept : {"model.layers.0.self_attn.o_proj.weight", "lm_head.weight", "model.layers.0.mlp.gate.weight", "model.embed_tokens.weight"}) EXPECT_EQ(out_file.at(kept).dtype, "BF16") << kept;
  EXPECT_EQ(Convert(Modelopt()).converted, 6) << "without --include dense";
}

TEST_F(ConvertChoice, NothingToDoIsAnErrorThatSaysWhy) {
  TinyModel m;
  Write(m);
  quant::ExportOptions options = Modelopt();
  options.excluded = Excluding({"*.experts.*"});
  EXPECT_THAT(model::ErrorOf(Quantize(in(), out(), options)), HasSubstr("all 6 expert matrices are excluded"));
  if (checkpoint::SharedReference().empty()) return;
  EXPECT_THAT(model::ErrorOf(Quantize(checkpoint::SharedReference() / "models" / "qwen3", out(), Modelopt())), HasSubstr("--include dense converts its dense layers"));
}

TEST_F(ConvertChoice, BothConfigurationFilesSayTheSame) {
  Write(TinyModel());
  quant::ExportOptions options = Modelopt();
  options.settings = {{"contract", "modelopt"}, {"ws2", "cuda"}};
  Convert(options);
  const base::Json section = *FileJson(out() / "config.json").Find("quantization_config"), file = FileJson(out() / "hf_quant_config.json");
  EXPECT_EQ(section.Find("quant_method")->as_string(), "modelopt");
  EXPECT_EQ(section.Find("quant_algo")->as_string(), "NVFP4");
  EXPECT_EQ(section.Find("group_size")->as_int(), 16);
  EXPECT_EQ(*section.Find("ignore"), *file.Find("quantization")->Find("exclude_modules"));
  EXPECT_EQ(*section.Find("quant_algo"), *file.Find("quantization")->Find("quant_algo"));
  EXPECT_EQ(*section.Find("producer"), *file.Find("producer"));
  EXPECT_EQ(section.Find("producer")->Find("ws2")->as_string(), "cuda");
  std::vector<std::string> ignore;
  for (const base::Json& e : section.Find("ignore")->as_array()) ignore.push_back(e.as_string());
  EXPECT_THAT(ignore, ElementsAre("lm_head", "model.embed_tokens", "model.layers.0.mlp.gate", "model.layers.0.self_attn*"));
  EXPECT_EQ(FileJson(out() / "config.json").Find("hidden_size")->as_int(), 32) << "the rest of config.json stays";
  EXPECT_THAT(Metadata().warnings, testing::IsEmpty());
}

TEST_F(ConvertChoice, WeightOnly) {
  Write(TinyModel());
  quant::ExportOptions options = Modelopt();
  options.weight_only = true;
  Convert(options);
  for (const auto& [name, tensor] : ReadFolder(out())) EXPECT_FALSE(name.ends_with("input_scale")) << name;
  EXPECT_EQ(FileJson(out() / "hf_quant_config.json").Find("quantization")->Find("quant_algo")->as_string(), "W4A16_NVFP4");
  EXPECT_TRUE(Metadata().main.weight_only);

  // Converting that again keeps the form unless the other is asked for.
  fs::rename(out(), t_.path() / "a16");
  MustQuantize(t_.path() / "a16", out(), Modelopt());
  EXPECT_TRUE(Metadata().main.weight_only);
  fs::remove_all(out());
  options.weight_only = false;
  MustQuantize(t_.path() / "a16", out(), options);
  EXPECT_FALSE(Metadata().main.weight_only);
  EXPECT_EQ(ReadFolder(out()).at(Expert(0, 0, "up") + ".input_scale").Floats(), std::vector<float>{1.0f});
}

}  // namespace
}  // namespace halfbyte::test
