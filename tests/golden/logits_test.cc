// Logits and greedy answers of the reference models against transformers (issue: "Shown when done"; bounds from the reference data's README).
#include <gtest/gtest.h>

#include <algorithm>

#include "golden/golden_models.h"
#include "support/golden_file.h"

namespace halfbyte::golden {
namespace {

using model::Arithmetic;
using test::GoldenFile;

std::vector<int32_t> Ids(const GoldenFile& expected, const char* name = "input_ids") {
  std::vector<int32_t> ids;
  for (int64_t id : expected.at(name).As<int64_t>()) ids.push_back(static_cast<int32_t>(id));
  return ids;
}

// transformers' logits in the source's precision: `logits`, or of an FP8 file those of its dequantized weights.
std::vector<float> SourceLogits(const GoldenFile& expected) {
  return expected.at(expected.contains("logits") ? "logits" : "logits.dequantized").As<float>();
}

class EveryModel : public testing::TestWithParam<std::string> {};

TEST_P(EveryModel, SourcePrecisionEqualsTransformers) {
  HB_FOLDER_OR_SKIP(folder, GetParam());
  const GoldenFile expected = test::ReadGolden(folder / "expected.safetensors");
  const std::vector<std::vector<int32_t>> ids = {Ids(expected)};
  const std::vector<float> want = SourceLogits(expected);

  const std::vector<float> reference = Logits(folder, {"reference", "none", Arithmetic::kExact}, ids)[0];
  EXPECT_LE(MaxError(reference, want), 2e-4);
  EXPECT_LE(MaxError(Logits(folder, {"cpu", "none", Arithmetic::kExact}, ids)[0], want), 1e-3);
}

// The default form of cpu: tight against the oracle with the same rounding points, loose against FP32 (the rounding points cost 0.0055 at worst).
TEST_P(EveryModel, DefaultFormHasTheStatedRoundingPoints) {
  HB_FOLDER_OR_SKIP(folder, GetParam());
  const GoldenFile expected = test::ReadGolden(folder / "expected.safetensors");
  const std::vector<std::vector<int32_t>> ids = {Ids(expected)};
  const std::vector<float> cpu = Logits(folder, {"cpu", "none", Arithmetic::kRounded}, ids)[0];
  const std::vector<float> reference = Logits(folder, {"reference", "none", Arithmetic::kRounded}, ids)[0];
  const double to_reference = RelativeRms(cpu, reference), to_fp32 = RelativeRms(cpu, SourceLogits(expected));
  std::printf("%s: relative RMS to the rounded reference %.2e, to transformers %.2e\n", GetParam().c_str(), to_reference, to_fp32);
  EXPECT_LE(to_reference, 5e-3);
  EXPECT_LE(to_fp32, 0.01);
  // The forms differ: a default that computed in FP32 would pass both bounds.
  EXPECT_GT(RelativeRms(reference, SourceLogits(expected)), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Golden, EveryModel, testing::ValuesIn(AllModels()), [](const auto& p) { std::string n = p.param; std::replace(n.begin(), n.end(), '-', '_'); return n; });

class Bf16Model : public testing::TestWithParam<std::string> {};

TEST_P(Bf16Model, GreedyAnswersAreTheStoredOnes) {
  HB_FOLDER_OR_SKIP(folder, GetParam());
  const GoldenFile expected = test::ReadGolden(folder / "expected.safetensors");
  std::vector<int32_t> prompt = Ids(expected);
  prompt.resize(8);
  for (const char* device : {"reference", "cpu"})
    EXPECT_EQ(Greedy(folder, {device, "none", Arithmetic::kExact}, {prompt}, 24, false)[0], Ids(expected, "greedy")) << device;
}

INSTANTIATE_TEST_SUITE_P(Golden, Bf16Model, testing::ValuesIn(Bf16Models()));

class MoeModel : public testing::TestWithParam<std::string> {};

TEST_P(MoeModel, ConvertedWhileLoading) {
  HB_FOLDER_OR_SKIP(folder, GetParam());
  const std::vector<std::vector<int32_t>> ids = {Ids(test::ReadGolden(folder / "expected.safetensors"))};
  const GoldenFile expected = test::ReadGolden(folder / "expected_nvfp4.safetensors");
  for (const char* device : {"reference", "cpu"}) {
    EXPECT_LE(MaxError(Logits(folder, {device, "w4a16", Arithmetic::kExact}, ids)[0], expected.at("logits.w4a16").As<float>()), 1e-3) << device;
    EXPECT_LE(RelativeRms(Logits(folder, {device, "nvfp4_online", Arithmetic::kExact}, ids)[0], expected.at("logits.w4a4_token").As<float>()), 1e-4) << device;
    EXPECT_LE(RelativeRms(Logits(folder, {device, "modelopt_fp4", Arithmetic::kExact}, ids)[0], expected.at("logits.w4a4_tensor").As<float>()), 1e-4) << device;
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, MoeModel, testing::ValuesIn(MoeModels()));

class Fp8Model : public testing::TestWithParam<std::string> {};

TEST_P(Fp8Model, ConvertedWhileLoading) {
  HB_FOLDER_OR_SKIP(folder, GetParam());
  const GoldenFile expected = test::ReadGolden(folder / "expected.safetensors");
  const std::vector<std::vector<int32_t>> ids = {Ids(expected)};
  for (const char* device : {"reference", "cpu"})
    EXPECT_LE(MaxError(Logits(folder, {device, "w4a16", Arithmetic::kExact}, ids)[0], expected.at("logits.w4a16").As<float>()), 1e-3) << device;
}

INSTANTIATE_TEST_SUITE_P(Golden, Fp8Model, testing::ValuesIn(Fp8Models()), [](const auto& p) { std::string n = p.param; std::replace(n.begin(), n.end(), '-', '_'); return n; });

// Static W4A4 in the attention as well as in the experts, against transformers with the reference's activation quantizer (tools/make_dense_w4a4_golden.py).
TEST(StaticActivations, OfDenseLayersToo) {
  const std::filesystem::path folder = std::filesystem::path(HALFBYTE_SOURCE_DIR) / "../shared/reference/producers" / "modelopt-nvfp4-all";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not here";
  const GoldenFile expected = test::ReadGolden(std::filesystem::path(HALFBYTE_SOURCE_DIR) / "tests/data/quant/dense-w4a4.safetensors");
  const std::vector<std::vector<int32_t>> ids = {Ids(expected)};
  const std::vector<float> want = expected.at("logits.w4a4_static").As<float>();
  for (const char* device : {"reference", "cpu"}) EXPECT_LE(RelativeRms(Logits(folder, {device, "modelopt_fp4", Arithmetic::kExact}, ids)[0], want), 1e-4) << device;
  // The dense layers' scales matter: W4A16 is far away.
  EXPECT_GT(RelativeRms(Logits(folder, {"cpu", "w4a16", Arithmetic::kExact}, ids)[0], want), 0.1);
}

}  // namespace
}  // namespace halfbyte::golden
