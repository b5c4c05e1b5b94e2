#include "engine/engine.h"

#include <gtest/gtest.h>

#include "fake_model.h"

namespace halfbyte::engine {
namespace {

StateGeometry Paged(int64_t blocks) { return {.block_tokens = 16, .blocks = blocks}; }

Request Prompt(std::vector<int32_t> tokens, int64_t max_tokens) {
  Request r;
  r.prompt = std::move(tokens);
  r.max_tokens = max_tokens;
  r.ignore_eos = true;
  return r;
}

TEST(Engine, GenerateGivesWhatTheModelGivesAlone) {
  auto fake = std::make_unique<FakeModel>(Paged(20));
  const Request request = Prompt({3, 1, 4, 1, 5}, 40);
  const auto want = fake->RunAlone(request, 320);
  auto engine = Engine::Create(std::move(fake), EngineOptions{.max_batch = 4});
  int seen = 0;
  const auto got = engine->Generate(request, [&](int32_t token) { EXPECT_EQ(token, want.tokens[static_cast<size_t>(seen++)]); return true; });
  ASSERT_TRUE(got);
  EXPECT_EQ(got->tokens, want.tokens);
  EXPECT_EQ(seen, 40);
  EXPECT_EQ(got->finish.reason, FinishReason::kLength);
  EXPECT_EQ(got->finish.usage.prompt_tokens, 5);
  EXPECT_EQ(got->finish.usage.completion_tokens, 40);
}

TEST(Engine, ACallbackThatHasEnoughStopsTheAnswer) {
  auto engine = Engine::Create(std::make_unique<FakeModel>(Paged(20)), EngineOptions{});
  int seen = 0;
  const auto got = engine->Generate(Prompt({1}, 200), [&](int32_t) { return ++seen < 3; });
  ASSERT_TRUE(got);
  EXPECT_EQ(got->tokens.size(), 3u);
  EXPECT_EQ(got->finish.reason, FinishReason::kStop);
  EXPECT_EQ(got->finish.usage.completion_tokens, 3);
}

TEST(Engine, RequestsThatCanNeverBeServedAreRefusedWithTheReason) {
  auto engine = Engine::Create(std::make_unique<FakeModel>(Paged(2)), EngineOptions{});
  EXPECT_EQ(engine->max_length(), 32);
  const auto refuse = [&](Request r, const char* what) {
    const auto got = engine->Generate(std::move(r));
    ASSERT_FALSE(got) << what;
    EXPECT_EQ(got.error().code(), base::ErrorCode::kInvalidArgument);
    EXPECT_NE(got.error().message().find(what), std::string::npos) << got.error().message();
  };
  refuse(Prompt({}, 1), "no tokens");
  refuse(Prompt({29}, 1), "token 29");
  refuse(Prompt({-1}, 1), "token -1");
  refuse(Prompt(std::vector<int32_t>(32, 1), 1), "at most 32");
  refuse(Prompt({1}, -1), "max_tokens");
  Request r = Prompt({1}, 1);
  r.sampling.top_p = 0;
  refuse(r, "top_p");
  EXPECT_TRUE(engine->Generate(Prompt(std::vector<int32_t>(31, 1), 5)));
}

}  // namespace
}  // namespace halfbyte::engine
