#include "engine/sampler.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <set>

#include "engine/philox.h"

namespace halfbyte::engine {
namespace {

// Known answers of Philox4x32-10 from the Random123 distribution (kat_vectors).
TEST(Philox, KnownAnswers) {
  using C = std::array<uint32_t, 4>;
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}), (C{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (C{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}), (C{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, DrawsAreInTheUnitIntervalAndDependOnAllThreeNumbers) {
  std::set<double> seen;
  for (uint64_t i = 0; i < 1000; ++i)
    for (double u : {UniformDraw(1, 0, i), UniformDraw(2, 0, i), UniformDraw(1, 1, i), UniformDraw(uint64_t{1} << 32, 0, i)}) {
      EXPECT_GE(u, 0);
      EXPECT_LT(u, 1);
      EXPECT_TRUE(seen.insert(u).second);
    }
}

struct Case {
  std::vector<float> logits;
  SamplingParams params;
  TokenHistory history;
  std::vector<int32_t> forbidden;
  std::vector<uint64_t> allowed;
  uint64_t index = 0;

  base::Result<Sampled> Run() const {
    Sampler sampler;
    return sampler.Sample({logits, &params, &history, forbidden, allowed, index});
  }
  int32_t Token() const {
    const auto r = Run();
    EXPECT_TRUE(r) << (r ? "" : r.error().ToString());
    return r ? r->token : -1;
  }
};

TEST(Sampler, GreedyIsArgmaxTiesToTheLowestId) {
  EXPECT_EQ((Case{{0, 3, 1, 3}}.Token()), 1);
  Case c{{-2, -1, -1}};
  c.params.top_p = 0.1f;
  c.params.seed = 99;
  EXPECT_EQ(c.Token(), 1);
}

TEST(Sampler, ANonFiniteLogitIsAnErrorNeverAToken) {
  for (float temperature : {0.0f, 1.0f}) {
    Case c{{0, std::numeric_limits<float>::quiet_NaN(), 1}};
    c.params.temperature = temperature;
    c.params.logprobs = 2;
    EXPECT_FALSE(c.Run());
    c.logits[1] = std::numeric_limits<float>::infinity();
    EXPECT_FALSE(c.Run());
    c.allowed = {0b101};  // also where a mask would hide it
    EXPECT_FALSE(c.Run());
  }
}

TEST(Sampler, MasksBiasAndForbiddenTokens) {
  Case c{{5, 4, 3, 2}};
  c.forbidden = {0};
  EXPECT_EQ(c.Token(), 1);
  c.allowed = {0b1101};
  EXPECT_EQ(c.Token(), 2);
  c.params.logit_bias = {{3, 1.5f}, {0, 100.0f}};  // a bias does not lift what is forbidden
  EXPECT_EQ(c.Token(), 3);
  c.allowed = {0b0001};
  EXPECT_FALSE(c.Run());
}

TEST(Sampler, MaskReachesBeyondOneWord) {
  Case c;
  c.logits.assign(130, 0);
  c.logits[3] = 5;
  c.allowed = {0, 0, 0b10};
  EXPECT_EQ(c.Token(), 129);
}

TEST(Sampler, PenaltiesByHand) {
  Case c{{2.0f, 1.8f, -1.0f}};
  c.history.AddPrompt(std::vector<int32_t>{0});
  c.params.repetition_penalty = 1.25f;  // 2.0 -> 1.6
  EXPECT_EQ(c.Token(), 1);
  c.history.AddGenerated(1);            // 1.8 -> 1.44
  EXPECT_EQ(c.Token(), 0);

  Case d{{2.0f, 1.0f}};                 // presence and frequency leave prompt tokens alone
  d.history.AddPrompt(std::vector<int32_t>{0, 0});
  d.params.presence_penalty = 1.5f;
  d.params.frequency_penalty = 1.5f;
  EXPECT_EQ(d.Token(), 0);
  d.history.AddGenerated(0);            // 2.0 - 3.0
  EXPECT_EQ(d.Token(), 1);

  Case e{{-1.0f, -1.1f}};               // negative logits are multiplied: repetition always lowers
  e.history.AddPrompt(std::vector<int32_t>{0});
  e.params.repetition_penalty = 1.2f;
  EXPECT_EQ(e.Token(), 1);

  Case f{{2.0f, 0.0f}};                 // frequency counts: 2 - 3 * 0.7
  f.params.frequency_penalty = 0.7f;
  f.history.AddGenerated(0);
  f.history.AddGenerated(0);
  EXPECT_EQ(f.Token(), 0);
  f.history.AddGenerated(0);
  EXPECT_EQ(f.Token(), 1);
}

TEST(Sampler, LogprobsAreThoseBeforeTemperaturePenaltiesAndMasks) {
  Case c{{std::log(6.0f), std::log(3.0f), std::log(1.0f)}};
  c.params.temperature = 0.3f;
  c.params.logit_bias = {{2, 50.0f}};
  c.params.logprobs = 2;
  c.forbidden = {0};
  const auto r = c.Run();
  ASSERT_TRUE(r);
  EXPECT_EQ(r->token, 2);
  ASSERT_TRUE(r->logprobs);
  EXPECT_NEAR(r->logprobs->logprob, std::log(0.1), 1e-6);
  EXPECT_EQ(r->logprobs->rank, 3);
  ASSERT_EQ(r->logprobs->top.size(), 2u);
  EXPECT_EQ(r->logprobs->top[0].token, 0);
  EXPECT_NEAR(r->logprobs->top[0].logprob, std::log(0.6), 1e-6);
  c.params.logprobs = -1;
  EXPECT_FALSE(c.Run()->logprobs);
}

TEST(Sampler, SeedStreamAndIndexDecideAndNothingElse) {
  Case c;
  c.logits.assign(1000, 0);
  c.params.temperature = 1;
  c.params.seed = 42;
  Sampler used;  // its scratch has seen other rows
  const Case other{{1, 2, 3}, c.params};
  std::set<int32_t> seen;
  for (uint64_t i = 0; i < 50; ++i) {
    c.index = i;
    (void)used.Sample({other.logits, &other.params, &other.history, {}, {}, i});
    const auto again = used.Sample({c.logits, &c.params, &c.history, {}, {}, i});
    ASSERT_TRUE(again);
    EXPECT_EQ(again->token, c.Token());
    seen.insert(again->token);
  }
  EXPECT_GT(seen.size(), 40u);
  const int32_t before = c.Token();
  c.params.stream = 1;
  EXPECT_NE(before, c.Token());
}

TEST(SamplingParams, OutOfRangeValuesAreNamed) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto fails = [](auto change, const char* name) {
    SamplingParams p;
    change(p);
    const auto s = Validate(p, 100);
    ASSERT_FALSE(s) << name;
    EXPECT_EQ(s.error().code(), base::ErrorCode::kInvalidArgument);
    EXPECT_NE(s.error().message().find(name), std::string::npos) << s.error().message();
  };
  EXPECT_TRUE(Validate(SamplingParams{}, 100));
  fails([&](auto& p) { p.temperature = nan; }, "temperature");
  fails([&](auto& p) { p.temperature = -1; }, "temperature");
  fails([&](auto& p) { p.top_p = 0; }, "top_p");
  fails([&](auto& p) { p.top_p = 1.1f; }, "top_p");
  fails([&](auto& p) { p.top_p = nan; }, "top_p");
  fails([&](auto& p) { p.min_p = -0.1f; }, "min_p");
  fails([&](auto& p) { p.top_k = -2; }, "top_k");
  fails([&](auto& p) { p.repetition_penalty = 0; }, "repetition_penalty");
  fails([&](auto& p) { p.presence_penalty = nan; }, "presence_penalty");
  fails([&](auto& p) { p.frequency_penalty = 1e9f; }, "frequency_penalty");
  fails([&](auto& p) { p.logprobs = 101; }, "logprobs");
  fails([&](auto& p) { p.logit_bias = {{100, 1}}; }, "logit_bias");
  fails([&](auto& p) { p.logit_bias = {{-1, 1}}; }, "logit_bias");
  fails([&](auto& p) { p.logit_bias = {{1, nan}}; }, "logit_bias");
}

}  // namespace
}  // namespace halfbyte::engine
