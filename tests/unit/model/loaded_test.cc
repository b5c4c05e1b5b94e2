// Loaded models that run: zero experts (T04), stacked experts (T08), dummy weights, scales of the KV cache.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/model_runner.h"
#include "engine/score.h"
#include "model/weights.h"
#include "unit/model/tiny_model.h"

namespace halfbyte::model {
namespace {

LoadSettings Settings(const char* quantization, const char* device, Arithmetic arithmetic) {
  LoadSettings s = Mode(quantization);
  s.device = device;
  s.arithmetic = arithmetic;
  return s;
}

std::unique_ptr<Model> Loaded(const TinyModel& m, const LoadSettings& settings) {
  TemporaryFolder folder;
  m.Write(folder);
  auto loaded = LoadModel(folder.path(), settings);
  EXPECT_TRUE(loaded) << loaded.error().ToString();
  return loaded ? std::move(loaded->model) : nullptr;
}

// The routed experts of layer 0 alone: every row of x to one expert with weight 1.
std::vector<float> RunExpert(Model& model, const std::vector<float>& x, int32_t expert) {
  const int64_t d = model.spec().hidden, rows = static_cast<int64_t>(x.size()) / d;
  std::vector<float> out(x.size(), 0.0f), weights(static_cast<size_t>(rows), 1.0f);
  std::vector<int32_t> ids(static_cast<size_t>(rows), expert);
  model.backend().Moe({{x.data(), tensor::DType::kF32, rows, d}, rows, model.weights().layers[0].experts.get(), 1, ids, weights, {out.data(), tensor::DType::kF32, rows, d}});
  EXPECT_TRUE(model.backend().Synchronize());
  return out;
}

constexpr const char* kModes[] = {"none", "w4a16", "w4a8", "nvfp4_online", "modelopt_fp4"};

TEST(LoadedModel, AnExpertOfZerosGivesExactlyZeroAndDisturbsNobody) {
  TinyModel two, one({.experts = 1});
  for (const char* part : {"gate_proj", "up_proj", "down_proj"}) {
    auto name = [&](int e) { return base::StrCat("model.layers.0.mlp.experts.", e, ".", part, ".weight"); };
    std::fill(two.at(name(1)).data.begin(), two.at(name(1)).data.end(), '\0');
    one.at(name(0)).data = two.at(name(0)).data;
  }
  std::vector<float> x;
  for (int i = 0; i < 3 * 32; ++i) x.push_back(std::sin(0.7f * static_cast<float>(i)));
  for (const char* device : {"reference", "cpu"})
    for (const char* mode : kModes) {
      auto both = Loaded(two, Settings(mode, device, Arithmetic::kExact)), alone = Loaded(one, Settings(mode, device, Arithmetic::kExact));
      ASSERT_TRUE(both && alone);
      for (float v : RunExpert(*both, x, 1)) EXPECT_EQ(v, 0.0f) << mode << " on " << device;
      const std::vector<float> first = RunExpert(*both, x, 0);
      EXPECT_EQ(first, RunExpert(*alone, x, 0)) << mode << " on " << device;
      EXPECT_NE(first[0], 0.0f);
    }
}

// T08: gate 1.0, up 2.0, x thirty-two times 1/32: h = silu(1) * 2. down copies h to the first columns of the result.
TEST(LoadedModel, StackedExpertsGiveTheStatedValue) {
  TinyModel m;
  for (int e = 0; e < 2; ++e)
    for (const char* part : {"gate_proj", "up_proj", "down_proj"}) m.Remove(base::StrCat("model.layers.0.mlp.experts.", e, ".", part, ".weight"));
  std::vector<float> gate_up, down;
  for (int e = 0; e < 2; ++e) {
    for (int r = 0; r < 32; ++r) for (int c = 0; c < 32; ++c) gate_up.push_back(r < 16 ? 1.0f : 2.0f);
    for (int r = 0; r < 32; ++r) for (int c = 0; c < 16; ++c) down.push_back(r == c ? 1.0f : 0.0f);
  }
  m.Set("model.layers.0.mlp.experts.gate_up_proj", "BF16", "[2,32,32]", Bf16Of(gate_up));
  m.Set("model.layers.0.mlp.experts.down_proj", "BF16", "[2,32,16]", Bf16Of(down));
  const std::vector<float> x(32, 1.0f / 32);
  for (const char* mode : {"none", "w4a16", "nvfp4_online"}) {
    auto model = Loaded(m, Settings(mode, "reference", Arithmetic::kExact));
    ASSERT_TRUE(model);
    const std::vector<float> out = RunExpert(*model, x, 1);
    for (int i = 0; i < 16; ++i) EXPECT_NEAR(out[static_cast<size_t>(i)], 1.46212f, mode == std::string("nvfp4_online") ? 4e-3 : 1e-5) << mode << " " << i;
    for (int i = 16; i < 32; ++i) EXPECT_EQ(out[static_cast<size_t>(i)], 0.0f);
  }
}

std::vector<float> AllLogits(std::unique_ptr<Model> model, std::vector<int32_t> ids, std::optional<tensor::DType> kv_dtype = {}) {
  auto runner = engine::ModelRunner::Create(std::move(model), {.sequences = 1, .cache_tokens = 256, .kv_dtype = kv_dtype});
  EXPECT_TRUE(runner);
  const std::vector<std::vector<int32_t>> documents = {std::move(ids)};
  engine::Scorer scorer(**runner, documents);
  const auto pieces = scorer.Next();
  EXPECT_TRUE(pieces);
  const kernels::Matrix& m = (*pieces)[0].logits;
  const float* p = static_cast<const float*>(m.data);
  return {p, p + m.rows * m.cols};
}

TEST(LoadedModel, DummyWeightsNeedOnlyAConfig) {
  const TinyModel m({.layers = 2, .experts = 4, .hidden = 64, .f = 32, .top_k = 2});
  TemporaryFolder folder;
  folder.Write("config.json", m.config.Dump());
  for (const char* mode : kModes)
    for (auto dense : {quant::DenseQuantization::kNone, quant::DenseQuantization::kFp8, quant::DenseQuantization::kNvfp4}) {
      std::vector<float> first;
      for (int threads : {1, 2}) {
        LoadSettings s = Settings(mode, "cpu", Arithmetic::kRounded);
        s.dummy = true;
        s.dense = dense;
        s.threads = threads;
        auto loaded = LoadModel(folder.path(), s);
        ASSERT_TRUE(loaded) << mode << ": " << loaded.error().ToString();
        EXPECT_EQ(loaded->stats.parameters, [&] { int64_t n = 0; for (const auto& p : loaded->plan.matrices) n += p.source.rows * p.source.cols; return n; }());
        const std::vector<float> logits = AllLogits(std::move(loaded->model), {1, 2, 3, 4, 5});
        float most = 0;
        for (float v : logits) { ASSERT_TRUE(std::isfinite(v)) << mode; most = std::max(most, std::fabs(v)); }
        EXPECT_GT(most, 0) << mode;
        if (first.empty()) first = logits;
        EXPECT_EQ(logits, first) << mode << ": dummy weights depend on threads";
      }
    }
}

// k_scale and v_scale stand in every checkpoint that was calibrated for an FP8 cache; a cache of another dtype must not know them.
TEST(LoadedModel, ScalesOfTheKvCacheCountInAnFp8CacheOnly) {
  const TinyModel plain;
  TinyModel scaled;
  scaled.Set("model.layers.0.self_attn.k_proj.k_scale", "F32", "[]", checkpoint::FloatBytes({0.25f}));
  scaled.Set("model.layers.0.self_attn.v_proj.v_scale", "F32", "[]", checkpoint::FloatBytes({3.0f}));
  const std::vector<int32_t> ids = {1, 2, 3, 4, 5, 6, 7, 8};
  for (const char* device : {"reference", "cpu"})
    for (Arithmetic arithmetic : {Arithmetic::kRounded, Arithmetic::kExact}) {
      auto logits = [&](const TinyModel& m, tensor::DType kv) { return AllLogits(Loaded(m, Settings("w4a16", device, arithmetic)), ids, kv); };
      EXPECT_EQ(logits(scaled, tensor::DType::kBF16), logits(plain, tensor::DType::kBF16)) << device;
      if (arithmetic == Arithmetic::kExact) continue;  // keeps F32 whatever is asked for
      const std::vector<float> with = logits(scaled, tensor::DType::kF8E4M3), without = logits(plain, tensor::DType::kF8E4M3);
      EXPECT_NE(with, without) << device;  // other codes, the same values but for their rounding
      for (size_t i = 0; i < with.size(); ++i) EXPECT_NEAR(with[i], without[i], 0.05f) << device;
    }
}

// The same model twice, loaded by different numbers of workers: the same logits to the last bit.
TEST(LoadedModel, LogitsDoNotDependOnTheWorkersOfTheLoad) {
  const TinyModel m({.layers = 2, .experts = 4, .hidden = 64, .f = 32, .top_k = 2});
  for (const char* device : {"reference", "cpu"}) {
    std::vector<float> first;
    for (int threads : {1, 2, 5}) {
      LoadSettings s = Settings("w4a16", device, Arithmetic::kRounded);
      s.threads = threads;
      const std::vector<float> logits = AllLogits(Loaded(m, s), {1, 2, 3, 4, 5, 6, 7});
      if (first.empty()) first = logits;
      EXPECT_EQ(logits, first) << device << " " << threads;
    }
  }
}

}  // namespace
}  // namespace halfbyte::model
