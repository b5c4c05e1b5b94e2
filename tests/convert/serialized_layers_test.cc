// Sources whose matrices are stored in several ways at once, judged by a model of the same values in BF16: dense layers and heads in NVFP4, FP8 beside BF16
// in one expert; and configuration files that are damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "convert/convert_support.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"

namespace halfbyte::test {
namespace {

namespace fs = std::filesystem;
using checkpoint::FloatBytes;
using testing::AllOf;
using testing::HasSubstr;

// Puts random NVFP4 into `packed` and the values that it means into `plain`: powers of two above E4M3's, so that BF16 holds every one.
void SetNvfp4(TinyModel& packed, TinyModel& plain, const std::string& stem, int64_t rows, int64_t cols, uint64_t seed) {
  std::string codes, scales;
  std::vector<float> values;
  uint64_t state = seed;
  auto random = [&] { return static_cast<uint8_t>((state = state * 6364136223846793005ull + 1442695040888963407ull) >> 56); };
  for (int64_t i = 0; i < rows * cols / 2; ++i) codes += static_cast<char>(random());
  for (int64_t i = 0; i < rows * cols / 16; ++i) scales += static_cast<char>(0x30 + random() % 16);
  for (int64_t i = 0; i < rows * cols; ++i) {
    const auto byte = static_cast<uint8_t>(codes[static_cast<size_t>(i / 2)]);
    values.push_back(numerics::E2m1ToFloat(i % 2 ? byte >> 4 : byte & 15) * numerics::E4m3ToFloat(static_cast<uint8_t>(scales[static_cast<size_t>(i / 16)])) * 0.03125f);
  }
  packed.Set(stem + ".weight", "U8", base::StrCat("[", rows, ",", cols / 2, "]"), codes);
  packed.Set(stem + ".weight_scale", "F8_E4M3", base::StrCat("[", rows, ",", cols / 16, "]"), scales);
  packed.Set(stem + ".weight_scale_2", "BF16", "[1]", model::Bf16Of({0.03125f}));
  plain.at(stem + ".weight").data = model::Bf16Of(values);
}

TEST(SerializedLayers, DenseLayersAndTheHeadInNvfp4) {
  TinyModel packed, plain;
  const std::string layer = "model.layers.0.self_attn.";
  SetNvfp4(packed, plain, layer + "q_proj", 32, 32, 1);
  SetNvfp4(packed, plain, layer + "k_proj", 16, 32, 2);
  SetNvfp4(packed, plain, layer + "v_proj", 16, 32, 3);
  SetNvfp4(packed, plain, layer + "o_proj", 32, 32, 4);
  SetNvfp4(packed, plain, "lm_head", 48, 32, 5);
  TemporaryFolder a, b;
  packed.Write(a);
  plain.Write(b);
  for (const char* device : {"reference", "cpu"})
    for (const char* mode : {"none", "w4a16", "nvfp4_online"}) {
      model::LoadSettings settings = model::Mode(mode);
      settings.device = device;
      settings.arithmetic = model::Arithmetic::kExact;
      const std::vector<float> have = Logits(a.path(), settings, {1, 2, 3, 40}), want = Logits(b.path(), settings, {1, 2, 3, 40});
      ASSERT_EQ(have.size(), 4u * 48);
      for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(have[i], want[i], 1e-4f) << mode << " on " << device;
    }
  // In the static mode the dense layers quantize their activations too.
  const std::vector<float> fp4 = Logits(a.path(), model::Mode("modelopt_fp4"), {1, 2, 3}), w4a16 = Logits(a.path(), model::Mode("w4a16"), {1, 2, 3});
  EXPECT_NE(fp4, w4a16);
  for (float v : fp4) EXPECT_TRUE(std::isfinite(v));
}

// Gate FP8 and up BF16 in one expert, another expert whole in FP8, a third in BF16: each is what its values are, and the pair shares its amax.
TEST(SerializedLayers, Fp8AndBf16ExpertsInOneFile) {
  TinyModel mixed({.experts = 3}), plain({.experts = 3});
  auto set_fp8 = [&](int expert, const char* part, int64_t rows, int64_t cols, const char* scale_name) {
    const std::string stem = base::StrCat("model.layers.0.mlp.experts.", expert, ".", part, "_proj");
    std::string codes;
    std::vector<float> values;
    for (int64_t i = 0; i < rows * cols; ++i) {
      codes += static_cast<char>((i * 37 + expert * 11) % 0x70 | (i % 3 ? 0x80 : 0));
      values.push_back(numerics::E4m3ToFloat(static_cast<uint8_t>(codes.back())) * 0.0078125f);
    }
    mixed.Set(stem + ".weight", "F8_E4M3", base::StrCat("[", rows, ",", cols, "]"), codes);
    mixed.Set(stem + scale_name, "F32", "[]", FloatBytes({0.0078125f}));
    plain.at(stem + ".weight").data = model::Bf16Of(values);
  };
  set_fp8(0, "gate", 16, 32, ".weight_scale");
  set_fp8(1, "gate", 16, 32, ".weight_scale_inv");
  set_fp8(1, "up", 16, 32, ".scale");
  set_fp8(1, "down", 32, 16, ".weight_scale");
  const auto have = model::Convert(mixed, model::Mode("w4a16")), want = model::Convert(plain, model::Mode("w4a16"));
  ASSERT_TRUE(have && want) << (have ? want.error() : have.error()).ToString();
  ASSERT_EQ(have->matrices.size(), want->matrices.size());
  for (const auto& [id, matrix] : want->matrices) EXPECT_TRUE(have->matrices.at(id) == matrix) << id.ToString();
  EXPECT_EQ(have->matrices.at(model::Gate(0)).outer, have->matrices.at(model::Up(0)).outer);
}

// Both metadata files damaged in every way that a hand or a tool does it: refused with the file and the key, never a crash or a silent guess.
TEST(SerializedLayers, DamagedMetadataIsRefusedWithFileAndKey) {
  struct Case { const char *file, *content; std::vector<const char*> words; };
  const std::string deep = std::string(20000, '[') + std::string(20000, ']');
  const Case cases[] = {
      {"hf_quant_config.json", "", {"hf_quant_config.json"}},
      {"hf_quant_config.json", "{\"quantization\": {\"quant_algo\": \"NVFP4\"", {"hf_quant_config.json"}},
      {"hf_quant_config.json", "[1, 2]", {"hf_quant_config.json", "object"}},
      {"hf_quant_config.json", deep.c_str(), {"hf_quant_config.json"}},
      {"hf_quant_config.json", R"({"quantization": []})", {"hf_quant_config.json", "quantization"}},
      {"hf_quant_config.json", R"({"quantization": {"quant_algo": 4}})", {"hf_quant_config.json", "quant_algo"}},
      {"hf_quant_config.json", R"({"quantization": {"quant_algo": "NVFP4", "group_size": -16}})", {"hf_quant_config.json", "group_size"}},
      {"hf_quant_config.json", R"({"quantization": {"quant_algo": "NVFP4", "exclude_modules": {"lm_head": 1}}})", {"hf_quant_config.json", "exclude_modules"}},
      {"hf_quant_config.json", R"({"quantization": {"quant_algo": "NVFP4", "exclude_modules": [7]}})", {"hf_quant_config.json", "exclude_modules"}},
      {"hf_quant_config.json", R"({"quantization": {"quant_algo": "MIXED_PRECISION", "quantized_layers": ["a"]}})", {"hf_quant_config.json", "quantized_layers"}},
      {"config.json", "\"NVFP4\"", {"config.json", "quantization_config"}},
      {"config.json", R"({"quant_method": 8})", {"config.json", "quant_method"}},
      {"config.json", R"({"quant_method": "gptq", "bits": 4})", {"config.json", "gptq", "not read"}},
      {"config.json", R"({"quant_method": "fp8", "weight_block_size": [128]})", {"config.json", "weight_block_size"}},
      {"config.json", R"({"quant_method": "fp8", "weight_block_size": [0, 128]})", {"config.json", "weight_block_size"}},
      {"config.json", R"({"quant_method": "fp8", "modules_to_not_convert": "re:("})", {"re:("}},
      {"config.json", R"({"quant_method": "modelopt", "quant_algo": "NVFP4", "config_groups": [1]})", {"config.json", "config_groups"}},
      {"config.json", R"({"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 99999999999})", {"config.json", "group_size"}},
      {"config.json", R"({"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": 8})", {"config.json", "kv_cache_scheme"}},
      {"config.json", R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": "4"}}}})", {"config.json", "group_0", "num_bits"}},
      {"config.json", R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"targets": [1], "weights": {"num_bits": 4, "type": "float"}}}})", {"config.json", "targets"}}};
  for (const Case& c : cases) {
    TinyModel m;
    if (c.file == std::string_view("config.json")) m.config.Set("quantization_config", *base::Json::Parse(c.content));
    TemporaryFolder t;
    m.Write(t);
    if (c.file != std::string_view("config.json")) t.Write(c.file, c.content);
    for (const char* mode : {"auto", "modelopt_fp4"}) {
      const std::string error = model::ErrorOf(model::Prepare(t.path(), model::Mode(mode), "cpu"));
      for (const char* word : c.words) EXPECT_THAT(error, HasSubstr(word)) << std::string(c.content).substr(0, 100);
    }
    EXPECT_FALSE(Quantize(t.path(), t.path() / "out", Modelopt()));
    EXPECT_FALSE(fs::exists(t.path() / "out"));
  }
}

}  // namespace
}  // namespace halfbyte::test
