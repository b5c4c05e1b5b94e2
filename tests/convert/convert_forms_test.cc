// Other forms of the source and of the result: stacked experts, MTP layers (T11), measured activation scales, NVFP4 that lacks some, compressed-tensors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "convert/convert_support.h"
#include "numerics/nvfp4_block.h"

namespace halfbyte::test {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;

class ConvertForms : public testing::Test {
 protected:
  fs::path Write(const TinyModel& m, const std::string& to = "in") {
    fs::remove_all(t_.path() / to);
    fs::create_directories(t_.path() / to);
    t_.Write(fs::path(to) / "config.json", m.config.Dump());
    t_.Write(fs::path(to) / "model.safetensors", checkpoint::SafetensorsBytes(m.tensors));
    return t_.path() / to;
  }
  fs::path Convert(const fs::path& from, const quant::ExportOptions& options, const std::string& to = "out") {
    fs::remove_all(t_.path() / to);
    stats_ = MustQuantize(from, t_.path() / to, options);
    return t_.path() / to;
  }
  TemporaryFolder t_;
  quant::ExportStats stats_;
};

constexpr const char* kParts[] = {"gate", "up", "down"};
std::string Expert(int expert, const char* part, const char* ending = "", int layer = 0) { return base::StrCat("model.layers.", layer, ".mlp.experts.", expert, ".", part, "_proj", ending); }

// gate_up_proj [E, 2F, D] and down_proj [E, D, F] of the per-expert form.
TinyModel Stacked() {
  TinyModel m;
  std::string gate_up, down;
  for (int e = 0; e < 2; ++e) {
    gate_up += m.at(Expert(e, "gate", ".weight")).data + m.at(Expert(e, "up", ".weight")).data;
    down += m.at(Expert(e, "down", ".weight")).data;
    for (const char* part : kParts) m.Remove(Expert(e, part, ".weight"));
  }
  m.Set("model.layers.0.mlp.experts.gate_up_proj", "BF16", "[2,32,32]", gate_up);
  m.Set("model.layers.0.mlp.experts.down_proj", "BF16", "[2,32,16]", down);
  return m;
}

TEST_F(ConvertForms, StackedExpertsAreWrittenOneByOne) {
  for (const quant::ExportOptions& options : {Modelopt(), Online(), CompressedTensors()})
    ExpectSameTensors(ReadFolder(Convert(Write(TinyModel()), options, "plain")), ReadFolder(Convert(Write(Stacked()), options)));
}
TEST_F(ConvertForms, StackedExpertsThatStayAreCopiedWhole) {
  TinyModel m = Stacked();
  quant::ExportOptions options = Modelopt();
  options.excluded = Excluding({"*.gate_up_proj"});
  const GoldenFile in = ReadFolder(Write(m)), out = ReadFolder(Convert(t_.path() / "in", options));
  EXPECT_EQ(out.at("model.layers.0.mlp.experts.gate_up_proj").bytes, in.at("model.layers.0.mlp.experts.gate_up_proj").bytes);
  EXPECT_EQ(out.at(Expert(1, "down", ".weight")).dtype, "U8");
  EXPECT_EQ(out.count(Expert(1, "up", ".weight")), 0u);
}

// T11: an MTP layer behind the last one, and one in a file of its own; nothing of it in any list. `own_file` with the names of Qwen3-Next.
void AddMtp(std::vector<checkpoint::RawTensor>& tensors, const std::string& layer, bool with_head) {
  uint64_t seed = 900;
  auto matrix = [&](const std::string& name, int64_t rows, int64_t cols) { tensors.push_back({layer + name, "BF16", base::StrCat("[", rows, ",", cols, "]"), model::RandomBf16(rows * cols, seed++)}); };
  matrix("eh_proj.weight", 32, 64);
  for (const char* norm : {"enorm.weight", "hnorm.weight", "shared_head.norm.weight"}) tensors.push_back({layer + norm, "BF16", "[32]", model::RandomBf16(32, seed++)});
  if (with_head) matrix("shared_head.head.weight", 48, 32);
  for (int e = 0; e < 4; ++e) {
    matrix(base::StrCat("mlp.experts.", e, ".gate_proj.weight"), 16, 32);
    matrix(base::StrCat("mlp.experts.", e, ".up_proj.weight"), 16, 32);
    matrix(base::StrCat("mlp.experts.", e, ".down_proj.weight"), 32, 16);
  }
  matrix("mlp.gate.weight", 4, 32);
}

void ExpectMtpKept(const fs::path& in, const fs::path& out, const std::string& prefix, size_t tensors) {
  const GoldenFile before = ReadFolder(in), after = ReadFolder(out);
  size_t found = 0;
  for (const auto& [name, tensor] : before) {
    if (!name.starts_with(prefix)) continue;
    ++found;
    ASSERT_TRUE(after.count(name)) << name;
    EXPECT_TRUE(after.at(name).bytes == tensor.bytes && after.at(name).dtype == tensor.dtype) << name;
  }
  EXPECT_EQ(found, tensors);
  size_t scales = 0;
  for (const auto& [name, tensor] : after) scales += before.count(name) == 0;
  EXPECT_EQ(after.size() - scales, before.size());
  bool listed = false;
  const base::Json config = FileJson(out / "config.json");
  for (const base::Json& e : config.Find("quantization_config")->Find("ignore")->as_array()) listed |= e.as_string().starts_with(prefix.substr(0, prefix.size() - 1));
  EXPECT_TRUE(listed) << "the MTP modules are not in the exclude list";
}

TEST_F(ConvertForms, MtpLayersAreCarriedOver) {
  for (int mtp_layers : {1, 3})
    for (bool with_head : {true, false}) {
      TinyModel m({.layers = 2, .experts = 4});
      m.config.Set("num_nextn_predict_layers", mtp_layers);
      for (int l = 0; l < mtp_layers; ++l) AddMtp(m.tensors, base::StrCat("model.layers.", 2 + l, "."), with_head);
      const fs::path in = Write(m), out = Convert(in, Modelopt());
      EXPECT_EQ(stats_.converted, 2 * 4 * 3);
      for (int l = 0; l < mtp_layers; ++l) ExpectMtpKept(in, out, base::StrCat("model.layers.", 2 + l, "."), with_head ? 18 : 17);
      for (const char* mode : {"w4a16", "modelopt_fp4"}) EXPECT_FALSE(Logits(out, model::Mode(mode), {1, 2, 3}).empty()) << "runs without drafting";
    }
}
// The same where the main experts are NVFP4 already.
TEST_F(ConvertForms, MtpLayersBehindNvfp4Experts) {
  const fs::path first = Convert(Write(TinyModel({.layers = 2, .experts = 4})), Modelopt(), "first");
  TinyModel m({.layers = 2, .experts = 4});
  m.config = FileJson(first / "config.json");
  m.config.Set("num_nextn_predict_layers", 1);
  m.tensors.clear();
  for (const auto& [name, t] : ReadFolder(first)) {
    std::string shape;
    for (int64_t d : t.shape) shape += (shape.empty() ? "" : ",") + std::to_string(d);
    m.tensors.push_back({name, t.dtype, "[" + shape + "]", std::string(t.bytes.begin(), t.bytes.end())});
  }
  AddMtp(m.tensors, "model.layers.2.", true);
  const fs::path in = Write(m), out = Convert(in, Modelopt());
  EXPECT_EQ(stats_.converted, 0);
  ExpectSameTensors(ReadFolder(in), ReadFolder(out));
  ExpectMtpKept(in, out, "model.layers.2.", 18);
}
TEST_F(ConvertForms, MtpInAFileOfItsOwn) {
  TinyModel m({.layers = 2, .experts = 4});
  const fs::path in = Write(m);
  std::vector<checkpoint::RawTensor> mtp;
  AddMtp(mtp, "mtp.layers.0.", true);
  mtp.push_back({"mtp.fc.weight", "BF16", "[32,64]", model::RandomBf16(32 * 64, 5)});
  t_.Write("in/mtp.safetensors", checkpoint::SafetensorsBytes(mtp));
  ExpectMtpKept(in, Convert(in, Modelopt()), "mtp.", mtp.size());
  EXPECT_FALSE(Logits(t_.path() / "out", model::Mode("auto"), {1, 2, 3}).empty());
}
// An MTP layer that is NVFP4 or FP8 already is described as that.
TEST_F(ConvertForms, QuantizedMtpLayersAreDescribed) {
  TinyModel m;
  m.Set("mtp.fc.weight", "F8_E4M3", "[32,64]", std::string(32 * 64, '\x38'));
  m.Set("mtp.fc.weight_scale", "F32", "[]", checkpoint::FloatBytes({0.5f}));
  m.Set("mtp.fc.input_scale", "F32", "[]", checkpoint::FloatBytes({0.5f}));
  m.Set("mtp.proj.weight", "U8", "[32,16]", std::string(32 * 16, '\x22'));
  m.Set("mtp.proj.weight_scale", "F8_E4M3", "[32,2]", std::string(64, '\x38'));
  m.Set("mtp.proj.weight_scale_2", "F32", "[]", checkpoint::FloatBytes({0.5f}));
  const fs::path out = Convert(Write(m), Modelopt());
  const base::Json config = FileJson(out / "hf_quant_config.json");
  const base::Json* layers = config.Find("quantization")->Find("quantized_layers");
  ASSERT_NE(layers, nullptr);
  EXPECT_EQ(layers->Find("mtp.fc")->Find("quant_algo")->as_string(), "FP8");
  EXPECT_EQ(layers->Find("mtp.proj")->Find("quant_algo")->as_string(), "NVFP4");
  EXPECT_EQ(layers->Find(Expert(0, "up"))->Find("quant_algo")->as_string(), "NVFP4");
  EXPECT_EQ(layers->Find("lm_head"), nullptr);
}

TEST_F(ConvertForms, MeasuredActivationScales) {
  quant::ExportOptions options = Modelopt();
  options.input_scales[0] = {.gate_up = 0.25f, .down = 0.125f};
  const GoldenFile out = ReadFolder(Convert(Write(TinyModel({.layers = 2})), options));
  for (int e = 0; e < 2; ++e)
    for (const char* part : kParts) {
      EXPECT_EQ(out.at(Expert(e, part, ".input_scale")).Floats()[0], part == std::string_view("down") ? 0.125f : 0.25f);
      EXPECT_EQ(out.at(Expert(e, part, ".input_scale", 1)).Floats()[0], 1.0f) << "a layer that was not measured";
    }
  options.format = quant::ExportFormat::kCompressedTensors;
  EXPECT_EQ(ReadFolder(Convert(t_.path() / "in", options)).at(Expert(1, "down", ".input_global_scale")).Floats()[0], 8.0f) << "a divisor";
}

// The bytes of an NVFP4 source pass through; a scale that an expert lacks is the layer's largest, and said so.
TEST_F(ConvertForms, AnNvfp4SourceWithoutSomeActivationScales) {
  quant::ExportOptions options = Modelopt();
  options.input_scales[0] = {.gate_up = 0.25f, .down = 0.125f};
  const fs::path first = Convert(Write(TinyModel()), options, "first");
  TinyModel m;
  m.config = FileJson(first / "config.json");
  m.tensors.clear();
  for (const auto& [name, t] : ReadFolder(first)) {
    if (name == Expert(1, "gate", ".input_scale")) continue;
    std::string shape;
    for (int64_t d : t.shape) shape += (shape.empty() ? "" : ",") + std::to_string(d);
    m.tensors.push_back({name, t.dtype, "[" + shape + "]", std::string(t.bytes.begin(), t.bytes.end())});
  }
  const fs::path out = Convert(Write(m), Modelopt());
  EXPECT_EQ(stats_.converted, 0);
  EXPECT_EQ(stats_.reused, 6);
  ExpectSameTensors(ReadFolder(first), ReadFolder(out));
  EXPECT_THAT(stats_.warnings, Contains(HasSubstr("no input_scale for layer 0, expert 1, experts.gate: the layer's largest is written")));
}

// There and back through the other dialect: codes and block scales are the same bytes; the reciprocal scales agree to a rounding.
TEST_F(ConvertForms, ModeloptToCompressedTensorsAndBack) {
  const GoldenFile modelopt = ReadFolder(Convert(Write(TinyModel()), Modelopt(), "modelopt"));
  const GoldenFile compressed = ReadFolder(Convert(t_.path() / "modelopt", CompressedTensors(), "compressed"));
  ExpectSameTensors(compressed, ReadFolder(Convert(t_.path() / "in", CompressedTensors(), "direct")));
  const GoldenFile back = ReadFolder(Convert(t_.path() / "compressed", Modelopt(), "back"));
  for (int e = 0; e < 2; ++e)
    for (const char* part : kParts) {
      EXPECT_EQ(compressed.at(Expert(e, part, ".weight_packed")).bytes, modelopt.at(Expert(e, part, ".weight")).bytes);
      EXPECT_EQ(compressed.at(Expert(e, part, ".weight_scale")).bytes, modelopt.at(Expert(e, part, ".weight_scale")).bytes);
      const float ws2 = modelopt.at(Expert(e, part, ".weight_scale_2")).Floats()[0];
      EXPECT_EQ(compressed.at(Expert(e, part, ".weight_global_scale")).Floats()[0], 1.0f / ws2);
      EXPECT_FLOAT_EQ(back.at(Expert(e, part, ".weight_scale_2")).Floats()[0], ws2);
    }
  const base::Json section = *FileJson(t_.path() / "compressed" / "config.json").Find("quantization_config");
  EXPECT_EQ(section.Find("format")->as_string(), "nvfp4-pack-quantized");
  EXPECT_FALSE(fs::exists(t_.path() / "compressed" / "hf_quant_config.json"));
}

// Dense layers that stay FP8: groups of their own, scales under the dialect's names and shapes with the source's bytes, and the same model.
TEST_F(ConvertForms, CompressedTensorsWithFp8Beside) {
  HB_NEED_SHARED_REFERENCE();
  const struct { const char* source; const char* strategy; std::vector<int64_t> q_scale; } cases[] = {
      {"models/mixtral-fp8-block", "block", {2, 2}}, {"models/qwen3_moe-fp8-tensor", "tensor", {1}}, {"models/qwen3_moe-fp8-channel", "channel", {64, 1}}, {"producers/modelopt-fp8", "tensor", {1}}};
  for (const auto& c : cases) {
    const fs::path in = checkpoint::SharedReference() / c.source, out = Convert(in, CompressedTensors()), modelopt = Convert(in, Modelopt(), "modelopt");
    const GoldenFile source = ReadFolder(in), got = ReadFolder(out);
    int kept = 0;
    for (const auto& [name, tensor] : source) {
      if (name.find(".experts.") != name.npos) continue;
      const std::string now = name.ends_with("_inv") ? name.substr(0, name.size() - 4) : name;
      ASSERT_TRUE(got.count(now)) << now;
      EXPECT_TRUE(got.at(now).bytes == tensor.bytes) << now;
      kept += tensor.dtype == "F8_E4M3";
    }
    EXPECT_GT(kept, 0);
    EXPECT_EQ(got.at("model.layers.0.self_attn.q_proj.weight_scale").shape, c.q_scale) << c.source;
    const base::Json config = FileJson(out / "config.json"), &section = *config.Find("quantization_config");
    EXPECT_EQ(section.Find("format")->as_string(), "mixed-precision");
    const base::Json& fp8 = *section.Find("config_groups")->Find("group_1");
    EXPECT_EQ(fp8.Find("weights")->Find("strategy")->as_string(), c.strategy);
    EXPECT_EQ(fp8.Find("targets")->as_array().size(), static_cast<size_t>(kept));
    EXPECT_LT(section.Find("config_groups")->Find("group_0")->Find("targets")->as_array().size(), 8u) << "one pattern for the experts of a layer and part";
    model::LoadSettings settings = model::Mode("w4a16");
    settings.device = "reference";
    const std::vector<float> a = Logits(out, settings, {5, 17, 80}), b = Logits(modelopt, settings, {5, 17, 80});
    // The experts' FP32 scales are reciprocals in one of them and may be an ulp off.
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5) << c.source;
  }
}
// One expert's gate and up in NVFP4_AWQ's form.
TinyModel WithAwq() {
  TinyModel m;
  for (const char* part : {"gate", "up"}) {
    const std::string stem = Expert(1, part);
    m.Set(stem + ".weight", "U8", "[16,16]", std::string(256, '\x22'));
    m.Set(stem + ".weight_scale", "F8_E4M3", "[16,2]", std::string(32, '\x38'));
    m.Set(stem + ".weight_scale_2", "F32", "[]", checkpoint::FloatBytes({0.5f}));
    m.Set(stem + ".pre_quant_scale", "BF16", "[32]", model::Bf16Of(std::vector<float>(32, 2.0f)));
  }
  return m;
}
// Matrices with AWQ factors are carried over with them, and the configuration says so.
TEST_F(ConvertForms, AwqFactorsAreCarriedOver) {
  const fs::path in = Write(WithAwq()), out = Convert(in, Modelopt());
  const GoldenFile before = ReadFolder(in), after = ReadFolder(out);
  EXPECT_EQ(stats_.converted, 4);
  for (const char* part : {"gate", "up"})
    for (const char* ending : {".weight", ".weight_scale", ".weight_scale_2", ".pre_quant_scale"}) {
      const std::string name = Expert(1, part, ending);
      ASSERT_TRUE(after.count(name)) << name;
      EXPECT_TRUE(after.at(name).bytes == before.at(name).bytes) << name;
    }
  const base::Json config = FileJson(out / "hf_quant_config.json");
  EXPECT_EQ(config.Find("quantization")->Find("quant_algo")->as_string(), "NVFP4_AWQ");
  EXPECT_EQ(Logits(in, model::Mode("w4a16"), {1, 2, 3}).size(), 3u * 48);
  EXPECT_FALSE(Logits(out, model::Mode("w4a16"), {1, 2, 3}).empty());
}
TEST_F(ConvertForms, WhatCompressedTensorsHasNoFormForIsRefusedByName) {
  const std::string q = "model.layers.0.self_attn.q_proj";
  TinyModel e5m2, power, packed;
  e5m2.Set(q + ".weight", "F8_E5M2", "[32,32]", std::string(1024, '\x3c'));
  e5m2.Set(q + ".weight_scale", "F32", "[]", checkpoint::FloatBytes({0.5f}));
  power.Set(q + ".weight", "F8_E4M3", "[32,32]", std::string(1024, '\x38'));
  power.Set(q + ".weight_scale_inv", "F8_E8M0", "[1,1]", "\x7e");
  TinyModel awq = WithAwq();
  for (const auto& [m, what] : {std::pair{&e5m2, "q_proj.weight: compressed-tensors has no form for F8_E5M2"}, {&power, "q_proj.weight_scale_inv: compressed-tensors has no form for F8_E8M0 scales"},
                                {&awq, "NVFP4 in ModelOpt's form that is only carried over"}}) {
    fs::remove_all(t_.path() / "out");
    EXPECT_THAT(model::ErrorOf(Quantize(Write(*m), t_.path() / "out", CompressedTensors())), testing::AllOf(HasSubstr(what), HasSubstr("--format modelopt")));
    EXPECT_FALSE(fs::exists(t_.path() / "out"));
    Convert(t_.path() / "in", Modelopt());
  }
}
// A block size of one row is no MXFP8: the scales stay FP32.
TEST_F(ConvertForms, CompressedTensorsWithFp8BlocksOfOneRow) {
  const std::string q = "model.layers.0.self_attn.q_proj", scales = checkpoint::FloatBytes(std::vector<float>(32, 0.5f));
  TinyModel m;
  m.config.Set("quantization_config", *base::Json::Parse(R"({"quant_method":"fp8","weight_block_size":[1,32]})"));
  m.Set(q + ".weight", "F8_E4M3", "[32,32]", std::string(1024, '\x38'));
  m.Set(q + ".weight_scale_inv", "F32", "[32,1]", scales);
  const fs::path out = Convert(Write(m), CompressedTensors());
  const GoldenTensor scale = ReadFolder(out).at(q + ".weight_scale");
  EXPECT_EQ(scale.dtype, "F32");
  EXPECT_TRUE(std::equal(scale.bytes.begin(), scale.bytes.end(), scales.begin(), scales.end(), [](uint8_t a, char b) { return a == static_cast<uint8_t>(b); }));
  const base::Json config = FileJson(out / "config.json");
  EXPECT_EQ(config.Find("quantization_config")->Find("config_groups")->Find("group_1")->Find("weights")->Find("strategy")->as_string(), "block");
}
TEST_F(ConvertForms, TwoActivationScalesOfOneLayerAreRefused) {
  const std::string q = "model.layers.0.self_attn.q_proj";
  TinyModel m;
  m.Set(q + ".weight", "F8_E4M3", "[32,32]", std::string(1024, '\x38'));
  m.Set(q + ".weight_scale", "F32", "[]", checkpoint::FloatBytes({0.5f}));
  m.Set(q + ".input_scale", "F32", "[2]", checkpoint::FloatBytes({0.5f, 0.25f}));
  EXPECT_THAT(model::ErrorOf(Quantize(Write(m), t_.path() / "out", CompressedTensors())), HasSubstr("q_proj.input_scale: shape [2]"));
}

}  // namespace
}  // namespace halfbyte::test
