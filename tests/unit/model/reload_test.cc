// Other weights into a running model: what fits, what is refused before anything changes. The server's tests have the whole of user case T14.
#include <gmock/gmock.h>

#include "engine/model_runner.h"
#include "engine/score.h"
#include "model/reload.h"
#include "model/weights.h"
#include "unit/model/tiny_model.h"

namespace halfbyte::model {
namespace {

using testing::HasSubstr;

constexpr TinySizes kSizes = {.layers = 2, .experts = 4, .top_k = 1};

LoadSettings Settings() {
  LoadSettings s = Mode("w4a16");
  s.device = "cpu";
  return s;
}

std::vector<float> LogitsOf(engine::ModelRunner& runner) {
  const std::vector<std::vector<int32_t>> documents = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}};
  engine::Scorer scorer(runner, documents);
  const auto pieces = scorer.Next();
  EXPECT_TRUE(pieces);
  const auto* p = static_cast<const float*>((*pieces)[0].logits.data);
  return {p, p + (*pieces)[0].logits.rows * (*pieces)[0].logits.cols};
}

struct Running {
  quant::QuantPlan plan;
  std::unique_ptr<engine::ModelRunner> runner;
};
Running Start(const TinyModel& m) {
  TemporaryFolder folder;
  m.Write(folder);
  auto loaded = LoadModel(folder.path(), Settings());
  EXPECT_TRUE(loaded) << loaded.error().ToString();
  auto runner = engine::ModelRunner::Create(std::move(loaded->model), {.sequences = 1, .cache_tokens = 256});
  EXPECT_TRUE(runner);
  return {std::move(loaded->plan), std::move(*runner)};
}
base::Result<Reload> Prepare(Running& running, const TinyModel& m) {
  TemporaryFolder folder;
  m.Write(folder);
  return Reload::Prepare(running.runner->model(), running.plan, folder.path(), Settings());
}

TEST(Reload, GivesTheLogitsOfAFreshStart) {
  TinyModel other(kSizes);
  for (RawTensor& t : other.tensors)
    if (t.name.find("norm") == t.name.npos) t.data = RandomBf16(static_cast<int64_t>(t.data.size()) / 2, 1000 + t.data.size());
  Running running = Start(TinyModel(kSizes)), fresh = Start(other);
  const std::vector<float> before = LogitsOf(*running.runner), want = LogitsOf(*fresh.runner);
  ASSERT_NE(before, want);
  auto reload = Prepare(running, other);
  ASSERT_TRUE(reload) << reload.error().ToString();
  EXPECT_EQ(LogitsOf(*running.runner), before);
  reload->Apply(running.runner->model());
  EXPECT_EQ(LogitsOf(*running.runner), want);
}

// Each of these changes what memory was sized by; none of them changes a tensor's shape.
TEST(Reload, ConfigurationsThatDoNotFitAreRefused) {
  Running running = Start(TinyModel(kSizes));
  for (auto [key, value] : {std::pair<const char*, int64_t>{"num_experts_per_tok", 4}, {"max_position_embeddings", 4096}, {"eos_token_id", 7}}) {
    TinyModel m(kSizes);
    m.config.Set(key, value);
    EXPECT_THAT(ErrorOf(Prepare(running, m)), HasSubstr("do not fit the running model")) << key;
  }
}

TEST(Reload, ShapesAndFormatsThatDoNotFitAreRefused) {
  Running running = Start(TinyModel(kSizes));
  for (const TinySizes& sizes : {TinySizes{.layers = 1, .experts = 4}, TinySizes{.layers = 2, .experts = 3}, TinySizes{.layers = 2, .experts = 4, .f = 32}, TinySizes{.layers = 2, .experts = 4, .vocab = 64}})
    EXPECT_THAT(ErrorOf(Prepare(running, TinyModel(sizes))), HasSubstr("do not fit the running model"));
  TinyModel scaled(kSizes);
  scaled.Set("model.layers.0.self_attn.k_proj.k_scale", "F32", "[]", checkpoint::FloatBytes({0.5f}));
  EXPECT_THAT(ErrorOf(Prepare(running, scaled)), HasSubstr("another set of tensors"));
}

}  // namespace
}  // namespace halfbyte::model
