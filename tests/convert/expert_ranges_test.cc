// Measured activation ranges against what transformers saw: the inputs of the first expert layer are stored beside the reference model, the inputs of the
// down matrices follow from them and the file's weights by plain sums.
#include <gtest/gtest.h>

#include <cmath>

#include "convert/convert_support.h"
#include "engine/model_runner.h"
#include "engine/score.h"
#include "model/expert_ranges.h"

namespace halfbyte::test {
namespace {

namespace fs = std::filesystem;

struct Expected {
  double x = 0, h = 0;
  std::vector<int64_t> rows;
};
Expected FromStoredInputs(const fs::path& folder) {
  const GoldenFile stored = ReadGolden(folder / "expected_nvfp4.safetensors"), weights = ReadGolden(folder / "model.safetensors");
  const std::vector<float> x = stored.at("moe.x").Floats();
  const int64_t tokens = stored.at("moe.x").shape[0], d = stored.at("moe.x").shape[1], top_k = stored.at("moe.topk_index").shape[1];
  const std::vector<int64_t> picks = stored.at("moe.topk_index").As<int64_t>();
  Expected e;
  e.rows.resize(6);
  for (float v : x) e.x = std::max<double>(e.x, std::fabs(v));
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t k = 0; k < top_k; ++k) {
      const int64_t expert = picks[static_cast<size_t>(t * top_k + k)];
      ++e.rows[static_cast<size_t>(expert)];
      const std::string stem = base::StrCat("model.layers.0.mlp.experts.", expert, ".");
      const std::vector<float> gate = weights.at(stem + "gate_proj.weight").Floats(), up = weights.at(stem + "up_proj.weight").Floats();
      for (size_t f = 0; f < gate.size() / static_cast<size_t>(d); ++f) {
        double g = 0, u = 0;
        for (size_t i = 0; i < static_cast<size_t>(d); ++i) {
          const double v = x[static_cast<size_t>(t * d) + i];
          g += v * gate[f * static_cast<size_t>(d) + i];
          u += v * up[f * static_cast<size_t>(d) + i];
        }
        e.h = std::max(e.h, std::fabs(g / (1 + std::exp(-g)) * u));
      }
    }
  return e;
}

TEST(ExpertRanges, AreThoseOfTheStoredInputs) {
  const fs::path folder = HALFBYTE_TEST_DATA "/models/qwen3_moe";
  const Expected want = FromStoredInputs(folder);
  ASSERT_GT(want.h, 0);
  const std::vector<int64_t> all = ReadGolden(folder / "expected.safetensors").at("input_ids").As<int64_t>();
  const std::vector<std::vector<int32_t>> documents = {std::vector<int32_t>(all.begin(), all.begin() + 8)};
  for (const char* device : {"reference", "cpu"}) {
    model::LoadSettings settings = model::Mode("none");
    settings.device = device;
    settings.arithmetic = model::Arithmetic::kExact;
    auto loaded = model::LoadModel(folder, settings);
    ASSERT_TRUE(loaded) << loaded.error().ToString();
    model::ExpertRanges ranges(loaded->model->spec());
    loaded->model->SetExpertObserver(&ranges);
    auto runner = engine::ModelRunner::Create(std::move(loaded->model), {.sequences = 1, .cache_tokens = 64});
    ASSERT_TRUE(runner) << runner.error().ToString();
    engine::Scorer scorer(**runner, documents);
    while (!scorer.Next()->empty()) {}
    ASSERT_EQ(ranges.layers().count(1), 0u) << "a dense layer";
    const auto& got = ranges.layers().at(0);
    EXPECT_NEAR(got.x / want.x, 1, 1e-5) << device;
    EXPECT_NEAR(got.h / want.h, 1, 1e-5) << device;
    EXPECT_EQ(got.rows, want.rows) << device;
  }
}

}  // namespace
}  // namespace halfbyte::test
