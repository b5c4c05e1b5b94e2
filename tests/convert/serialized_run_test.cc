// NVFP4 checkpoints that run: gate and up with different scales (T01), missing activation scales (T02, T02b), labels that are wrong, KV scales, FP8 beside
// NVFP4, through the loader, the engine and both CPU backends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "convert/convert_support.h"
#include "model/weights.h"

namespace halfbyte::test {
namespace {

namespace fs = std::filesystem;
using checkpoint::FloatBytes;
using model::Bf16Of;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kParts[] = {"gate", "up", "down"};
std::string Expert(int expert, const char* part, const char* ending) { return base::StrCat("model.layers.0.mlp.experts.", expert, ".", part, "_proj", ending); }

base::Json Modelopt(const char* algo, const char* activations) {
  return *base::Json::Parse(base::StrCat(R"({"quant_method": "modelopt", "quant_algo": ")", algo, R"(", "group_size": 16, "ignore": ["lm_head", "*.mlp.gate", "*self_attn*"],)",
                                         R"( "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "float", "group_size": 16}, "input_activations": )", activations, "}}}"));
}
constexpr const char* kFourBits = R"({"num_bits": 4, "type": "float", "group_size": 16})";

// User case T01: one expert of 16 x 16, every code 1.0, every block scale 1.0; weight_scale_2 of gate 1, up 2, down 1.
//   input sixteen times 0.0625: gate 1, up 2, h = silu(1) * 2 = 1.46212, each output 16 * h = 23.394
// The rest of the model makes that visible in the logits: attention adds nothing; token t's embedding is 10 * s with alternating signs s, the norm's
// weight turns it into 0.0625 everywhere; rows 0 and 1 of the head read columns 0 (s = 1) and 1 (s = -1) of the normed residual s * 10 + y.
TinyModel T01(bool input_scales) {
  TinyModel m({.experts = 1, .hidden = 16, .f = 16, .vocab = 4, .heads = 1});
  std::vector<float> embedding, norm, head(4 * 16, 0.0f);
  for (int i = 0; i < 4 * 16; ++i) embedding.push_back(i % 2 ? -10.0f : 10.0f);
  for (int i = 0; i < 16; ++i) norm.push_back(i % 2 ? -0.0625f : 0.0625f);
  head[0] = head[16 + 1] = 1.0f;
  m.config.Set("rms_norm_eps", 1e-12);
  m.config.Set("quantization_config", Modelopt("NVFP4", kFourBits));
  m.at("model.embed_tokens.weight").data = Bf16Of(embedding);
  m.at("model.layers.0.post_attention_layernorm.weight").data = Bf16Of(norm);
  m.at("lm_head.weight").data = Bf16Of(head);
  std::fill(m.at("model.layers.0.self_attn.o_proj.weight").data.begin(), m.at("model.layers.0.self_attn.o_proj.weight").data.end(), '\0');
  for (const char* part : kParts) {
    m.Remove(Expert(0, part, ".weight"));
    m.Set(Expert(0, part, ".weight"), "U8", "[16,8]", std::string(128, '\x22'));
    m.Set(Expert(0, part, ".weight_scale"), "F8_E4M3", "[16,1]", std::string(16, '\x38'));
    m.Set(Expert(0, part, ".weight_scale_2"), "F32", "[]", FloatBytes({part == std::string_view("up") ? 2.0f : 1.0f}));
    if (input_scales) m.Set(Expert(0, part, ".input_scale"), "F32", "[]", FloatBytes({(part == std::string_view("down") ? 1.46212f : 0.0625f) / 2688}));
  }
  return m;
}
// Each expert output y from the logits of any row: l0 / l1 = (10 + y) / (y - 10).
float ExpertOutput(const fs::path& folder, const char* mode, const char* device, model::Arithmetic arithmetic) {
  model::LoadSettings settings = model::Mode(mode);
  settings.device = device;
  settings.arithmetic = arithmetic;
  const std::vector<float> logits = Logits(folder, settings, {1, 2, 3});
  if (logits.size() < 12) return NAN;
  const float ratio = logits[8] / logits[9];
  return 10 * (ratio + 1) / (ratio - 1);
}

TEST(SerializedRun, GateAndUpWithDifferentScales) {
  TemporaryFolder t;
  T01(true).Write(t);
  for (const char* device : {"reference", "cpu"}) {
    for (const char* mode : {"auto", "none", "w4a16", "w4a8", "nvfp4_online", "modelopt_fp4"}) {
      EXPECT_NEAR(ExpertOutput(t.path(), mode, device, model::Arithmetic::kExact), 23.394f, 0.05f) << mode << " on " << device;
      EXPECT_NEAR(ExpertOutput(t.path(), mode, device, model::Arithmetic::kRounded), 23.4f, 0.4f) << mode << " on " << device << ": rounded to BF16 before the head";
    }
    EXPECT_NEAR(ExpertOutput(t.path(), "w4a16", device, model::Arithmetic::kExact), 16 * 1.4621172f, 1e-3f);
  }
}
// The same in compressed-tensors' words (divisors), and with gate and up in one stacked tensor with scales [E, 2].
TEST(SerializedRun, GateAndUpWithDifferentScalesInOtherDialects) {
  TinyModel compressed = T01(false), stacked = T01(false);
  for (const char* part : kParts) {
    for (const char* ending : {".weight", ".weight_scale_2"}) compressed.Remove(Expert(0, part, ending));
    compressed.Set(Expert(0, part, ".weight_packed"), "U8", "[16,8]", std::string(128, '\x22'));
    compressed.Set(Expert(0, part, ".weight_global_scale"), "F32", "[1]", FloatBytes({part == std::string_view("up") ? 0.5f : 1.0f}));
    compressed.Set(Expert(0, part, ".input_global_scale"), "F32", "[1]", FloatBytes({2688 / (part == std::string_view("down") ? 1.46212f : 0.0625f)}));
    for (const char* ending : {".weight", ".weight_scale", ".weight_scale_2"}) stacked.Remove(Expert(0, part, ending));
  }
  compressed.config.Set("quantization_config", *base::Json::Parse(R"({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", "config_groups": {"group_0": {"targets": ["Linear"],
      "weights": {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}, "input_activations": {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16, "dynamic": "local"}}},
      "ignore": ["lm_head", "re:.*self_attn.*", "re:.*mlp.gate$"]})"));
  const std::string experts = "model.layers.0.mlp.experts.";
  stacked.Set(experts + "gate_up_proj", "U8", "[1,32,8]", std::string(256, '\x22'));
  stacked.Set(experts + "gate_up_proj_weight_scale", "F8_E4M3", "[1,32,1]", std::string(32, '\x38'));
  stacked.Set(experts + "gate_up_proj_weight_scale_2", "F32", "[1,2]", FloatBytes({1, 2}));
  stacked.Set(experts + "down_proj", "U8", "[1,16,8]", std::string(128, '\x22'));
  stacked.Set(experts + "down_proj_weight_scale", "F8_E4M3", "[1,16,1]", std::string(16, '\x38'));
  stacked.Set(experts + "down_proj_weight_scale_2", "F32", "[1]", FloatBytes({1}));
  for (const TinyModel* m : {&compressed, &stacked}) {
    TemporaryFolder t;
    m->Write(t);
    for (const char* mode : {"none", "w4a16", "nvfp4_online"}) EXPECT_NEAR(ExpertOutput(t.path(), mode, "cpu", model::Arithmetic::kExact), 23.394f, 0.05f) << mode;
    if (m == &compressed) { EXPECT_NEAR(ExpertOutput(t.path(), "modelopt_fp4", "cpu", model::Arithmetic::kExact), 23.394f, 0.05f); }
  }
}

base::Result<model::Prepared> Prepared(const fs::path& folder, const char* mode) { return model::Prepare(folder, model::Mode(mode), "cpu"); }

// T02b: weight-only by its label and its tensors. A static mode has nothing to quantize activations with.
TEST(SerializedRun, WeightOnlyBecomesW4A16) {
  TinyModel m = T01(false);
  for (const base::Json& label : {Modelopt("NVFP4", "null"), Modelopt("W4A16_NVFP4", kFourBits), Modelopt("NVFP4_W4A16", "null")}) {
    m.config.Set("quantization_config", label);
    TemporaryFolder t;
    m.Write(t);
    const auto p = Prepared(t.path(), "modelopt_fp4");
    ASSERT_TRUE(p) << p.error().ToString();
    EXPECT_EQ(p->plan.mode, quant::QuantMode::kW4A16);
    EXPECT_THAT(p->plan.warnings, ElementsAre(AllOf(HasSubstr("weight-only"), HasSubstr("w4a16 instead of modelopt_fp4"))));
    EXPECT_NEAR(ExpertOutput(t.path(), "modelopt_fp4", "cpu", model::Arithmetic::kExact), 23.394f, 1e-2f) << "0 means an uninitialised scale";
    EXPECT_EQ(Prepared(t.path(), "nvfp4_online")->plan.mode, quant::QuantMode::kNvfp4Online) << "per token needs no scales";
  }
  // With activation scales the label is overruled.
  TinyModel with = T01(true);
  with.config.Set("quantization_config", Modelopt("NVFP4", "null"));
  TemporaryFolder t;
  with.Write(t);
  EXPECT_EQ(Prepared(t.path(), "modelopt_fp4")->plan.mode, quant::QuantMode::kModeloptFp4);
}

// T02: one scale of one expert is missing. Token 1 goes to expert 0, token 2 to expert 2.
class MissingScale : public testing::Test {
 protected:
  void SetUp() override {
    TinyModel m({.experts = 4, .hidden = 32, .f = 16, .vocab = 4});
    std::vector<float> embedding(4 * 32), router(4 * 32);
    for (size_t i = 0; i < 32; ++i) {
      for (size_t token = 0; token < 4; ++token) embedding[token * 32 + i] = token == 2 ? (i % 2 ? -1.0f : 1.0f) : (i < 16 ? 1.0f : -1.0f);
      router[i] = i < 16 ? 1.0f : -1.0f;
      router[2 * 32 + i] = i % 2 ? -1.0f : 1.0f;
    }
    m.at("model.embed_tokens.weight").data = Bf16Of(embedding);
    m.at("model.layers.0.mlp.gate.weight").data = Bf16Of(router);
    std::fill(m.at("model.layers.0.self_attn.o_proj.weight").data.begin(), m.at("model.layers.0.self_attn.o_proj.weight").data.end(), '\0');
    fs::create_directory(t_.path() / "bf16");
    t_.Write("bf16/config.json", m.config.Dump());
    t_.Write("bf16/model.safetensors", checkpoint::SafetensorsBytes(m.tensors));
    quant::ExportOptions options = test::Modelopt();
    options.input_scales[0] = {.gate_up = 1.0f / 2688, .down = 0.0001f};
    MustQuantize(t_.path() / "bf16", whole(), options);
    fs::create_directory(lacking());
    t_.Write("lacking/config.json", FileText(whole() / "config.json"));
    std::vector<checkpoint::RawTensor> tensors;
    for (const auto& [name, tensor] : ReadFolder(whole())) {
      if (name == Expert(2, "gate", ".input_scale")) continue;
      std::string shape;
      for (int64_t d : tensor.shape) shape += (shape.empty() ? "" : ",") + std::to_string(d);
      tensors.push_back({name, tensor.dtype, "[" + shape + "]", std::string(tensor.bytes.begin(), tensor.bytes.end())});
    }
    t_.Write("lacking/model.safetensors", checkpoint::SafetensorsBytes(tensors));
  }
  fs::path whole() const { return t_.path() / "whole"; }
  fs::path lacking() const { return t_.path() / "lacking"; }
  TemporaryFolder t_;
};
TEST_F(MissingScale, ModesThatDoNotReadItSayNothing) {
  for (const char* mode : {"w4a16", "nvfp4_online", "auto"}) {
    EXPECT_THAT(Prepared(lacking(), mode)->plan.warnings, testing::IsEmpty()) << mode;
    for (int32_t token : {1, 2}) {
      const std::vector<float> a = Logits(whole(), model::Mode(mode), {token}), b = Logits(lacking(), model::Mode(mode), {token});
      EXPECT_EQ(a, b) << mode;
      for (float v : b) EXPECT_TRUE(std::isfinite(v));
    }
  }
}
TEST_F(MissingScale, TheStaticModeNamesIt) {
  const auto p = Prepared(lacking(), "modelopt_fp4");
  ASSERT_TRUE(p) << p.error().ToString();
  EXPECT_THAT(p->plan.warnings, ElementsAre(HasSubstr("no input_scale for layer 0, expert 2, experts.gate")));
  EXPECT_THAT(Prepared(whole(), "modelopt_fp4")->plan.warnings, testing::IsEmpty());
  const std::vector<float> a = Logits(whole(), model::Mode("modelopt_fp4"), {1}), b = Logits(lacking(), model::Mode("modelopt_fp4"), {1});
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0) << "the other expert's token is bitwise the same";
  const std::vector<float> other = Logits(lacking(), model::Mode("modelopt_fp4"), {2});
  for (float v : other) EXPECT_TRUE(std::isfinite(v));
  EXPECT_NE(other, a);
}

// Labels that say something else than the tensors: one warning, and the tensors' values.
TEST(SerializedRun, LabelsThatDisagreeWithTheTensors) {
  TinyModel plain;
  TemporaryFolder unlabelled;
  plain.Write(unlabelled);
  plain.config.Set("quantization_config", Modelopt("NVFP4", kFourBits));
  TemporaryFolder labelled;
  plain.Write(labelled);
  const auto p = Prepared(labelled.path(), "w4a16");
  ASSERT_TRUE(p) << p.error().ToString();
  EXPECT_THAT(p->plan.warnings, ElementsAre("the configuration and the tensors disagree about 6 matrices (model.layers.0.mlp.experts.0.gate_proj: the label says NVFP4, the tensor is BF16); the tensors decide"));
  for (const char* mode : {"none", "w4a16"}) EXPECT_EQ(Logits(labelled.path(), model::Mode(mode), {1, 2, 3}), Logits(unlabelled.path(), model::Mode(mode), {1, 2, 3}));

  // NVFP4 tensors without any label, and with the label of FP8.
  TinyModel nvfp4 = T01(true);
  const std::pair<const char*, const char*> cases[] = {
      {"null", "disagree about 3 matrices (model.layers.0.mlp.experts.0.gate_proj: the label says not quantized, the tensor is NVFP4 1x16)"},
      {R"({"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]})", "disagree about 7 matrices (model.layers.0.self_attn.q_proj: the label says fp8, the tensor is BF16)"}};
  for (const auto& [label, warning] : cases) {
    nvfp4.config.Set("quantization_config", *base::Json::Parse(label));
    TemporaryFolder t;
    nvfp4.Write(t);
    const auto q = Prepared(t.path(), "auto");
    ASSERT_TRUE(q) << q.error().ToString();
    EXPECT_EQ(q->plan.mode, quant::QuantMode::kW4A16);
    EXPECT_THAT(q->plan.warnings, ElementsAre(HasSubstr(warning)));
    EXPECT_NEAR(ExpertOutput(t.path(), "auto", "cpu", model::Arithmetic::kExact), 23.394f, 1e-2f);
  }
}

// FP8 attention beside NVFP4 experts, labelled per layer or as a hybrid: read by tensors, the label agrees.
TEST(SerializedRun, Fp8BesideNvfp4) {
  TinyModel m = T01(true);
  for (const char* name : {"q", "k", "v"}) {
    const std::string stem = base::StrCat("model.layers.0.self_attn.", name, "_proj");
    m.Set(stem + ".weight", "F8_E4M3", "[16,16]", std::string(256, '\x38'));
    m.Set(stem + ".weight_scale", "F32", "[]", FloatBytes({0.5f}));
    m.Set(stem + ".input_scale", "F32", "[]", FloatBytes({0.5f}));
  }
  const std::string layers = R"("model.layers.0.mlp.experts": {"quant_algo": "NVFP4", "group_size": 16}, "model.layers.0.self_attn.q_proj": {"quant_algo": "FP8"},
      "model.layers.0.self_attn.k_proj": {"quant_algo": "FP8"}, "model.layers.0.self_attn.v_proj": {"quant_algo": "FP8"})";
  for (const std::string& label : {R"({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": {)" + layers + "}}",
                                   std::string(R"({"quant_method": "fp8", "activation_scheme": "static", "moe_quant_algo": "NVFP4", "ignore": ["*.o_proj"]})")}) {
    m.config.Set("quantization_config", *base::Json::Parse(label));
    TemporaryFolder t;
    m.Write(t);
    const auto p = Prepared(t.path(), "auto");
    ASSERT_TRUE(p) << label << ": " << p.error().ToString();
    EXPECT_THAT(p->plan.warnings, testing::IsEmpty()) << label;
    EXPECT_EQ(p->plan.Find({quant::TensorRole::kQ, 0, -1})->target.elem, tensor::DType::kF8E4M3);
    EXPECT_NEAR(ExpertOutput(t.path(), "auto", "cpu", model::Arithmetic::kExact), 23.394f, 1e-2f);
  }
}

// k_scale and v_scale scale what an FP8 cache holds; without that cache they change nothing. On k_proj and v_proj (ModelOpt) or on the attention module.
TEST(SerializedRun, KvScales) {
  auto with = [](const char* k_name, const char* v_name, float k, float v) {
    TinyModel m;
    m.Set(base::StrCat("model.layers.0.self_attn.", k_name), "F32", "[]", FloatBytes({k}));
    m.Set(base::StrCat("model.layers.0.self_attn.", v_name), "F32", "[1]", FloatBytes({v}));
    return m;
  };
  auto scales = [](const TinyModel& m) {
    TemporaryFolder t;
    m.Write(t);
    auto loaded = model::LoadModel(t.path(), model::Mode("none"));
    EXPECT_TRUE(loaded) << loaded.error().ToString();
    const model::LayerWeights& l = loaded->model->weights().layers[0];
    return std::pair{l.k_scale, l.v_scale};
  };
  EXPECT_EQ(scales(TinyModel()), std::pair(1.0f, 1.0f));
  EXPECT_EQ(scales(with("k_proj.k_scale", "v_proj.v_scale", 0.25f, 0.5f)), std::pair(0.25f, 0.5f));
  EXPECT_EQ(scales(with("k_scale", "v_scale", 0.25f, 0.5f)), std::pair(0.25f, 0.5f));
  EXPECT_EQ(scales(with("k_proj.k_scale", "v_proj.v_scale", -1.0f, 0.0f)), std::pair(1.0f, 1.0f)) << "never measured";

  // They are carried over, and the configuration says what they are for.
  TinyModel m = with("k_proj.k_scale", "v_proj.v_scale", 0.25f, 0.5f);
  TemporaryFolder t;
  fs::create_directory(t.path() / "in");
  t.Write("in/config.json", m.config.Dump());
  t.Write("in/model.safetensors", checkpoint::SafetensorsBytes(m.tensors));
  MustQuantize(t.path() / "in", t.path() / "out", test::Modelopt());
  EXPECT_EQ(ReadFolder(t.path() / "out").at("model.layers.0.self_attn.k_proj.k_scale").Floats(), std::vector<float>{0.25f});
  EXPECT_EQ(FileJson(t.path() / "out" / "hf_quant_config.json").Find("quantization")->Find("kv_cache_quant_algo")->as_string(), "FP8");
}

}  // namespace
}  // namespace halfbyte::test
