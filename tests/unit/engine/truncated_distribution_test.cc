// The bucketed filters against a plain full sort in FP64.
#include "engine/truncated_distribution.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "engine/philox.h"

namespace halfbyte::engine {
namespace {

struct Token { int32_t id; double weight; };

// Temperature, min_p, top_k, top_p by the book; best first.
std::vector<Token> Naive(const std::vector<float>& logits, const SamplingParams& p) {
  const double peak = *std::max_element(logits.begin(), logits.end());
  std::vector<Token> tokens;
  for (size_t i = 0; i < logits.size(); ++i) tokens.push_back({static_cast<int32_t>(i), std::exp((logits[i] - peak) / p.temperature)});
  std::stable_sort(tokens.begin(), tokens.end(), [&](const Token& a, const Token& b) { return logits[static_cast<size_t>(a.id)] > logits[static_cast<size_t>(b.id)]; });
  std::erase_if(tokens, [&](const Token& t) { return t.weight < static_cast<double>(p.min_p); });
  if (p.top_k > 0 && static_cast<size_t>(p.top_k) < tokens.size()) tokens.resize(static_cast<size_t>(p.top_k));
  if (p.top_p < 1) {
    double all = 0, sum = 0;
    for (const Token& t : tokens) all += t.weight;
    size_t n = 0;
    while (n < tokens.size() && sum < static_cast<double>(p.top_p) * all) sum += tokens[n++].weight;
    tokens.resize(n);
  }
  return tokens;
}

std::vector<int32_t> Ids(std::vector<Token> tokens) {
  std::vector<int32_t> ids;
  for (const Token& t : tokens) ids.push_back(t.id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::vector<float> RandomLogits(std::mt19937_64& random, size_t n) {
  std::normal_distribution<float> normal(0, std::uniform_real_distribution<float>(0.01f, 8)(random));
  std::vector<float> logits(n);
  const bool coarse = random() % 3 == 0;  // many equal logits
  for (float& l : logits) l = coarse ? std::round(normal(random)) : normal(random);
  if (random() % 4 == 0) for (size_t i = 0; i < n; i += 3) logits[i] = -std::numeric_limits<float>::infinity();
  if (random() % 4 == 0) logits[n / 2] = 40;
  return logits;
}

TEST(TruncatedDistribution, KeepsWhatAFullSortKeeps) {
  std::mt19937_64 random(1);
  TruncatedDistribution d;
  int differing = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const size_t n = 2 + random() % 700;
    const std::vector<float> logits = RandomLogits(random, n);
    SamplingParams p;
    p.temperature = std::uniform_real_distribution<float>(0.05f, 3)(random);
    if (random() % 2) p.top_k = 1 + static_cast<int64_t>(random() % (n + 5));
    if (random() % 2) p.top_p = std::uniform_real_distribution<float>(0.01f, 1)(random);
    if (random() % 2) p.min_p = std::pow(10.0f, std::uniform_real_distribution<float>(-6, 0)(random));
    const float peak = *std::max_element(logits.begin(), logits.end());
    d.Build(logits, peak, p);
    const auto want = Ids(Naive(logits, p));
    const auto got = d.Kept();
    // A token whose cumulative share equals top_p, or whose share equals min_p, to the last bits may fall on either side.
    if (got != want) {
      ++differing;
      const size_t a = got.size(), b = want.size();
      EXPECT_LE(a > b ? a - b : b - a, 1u) << "trial " << trial << " n " << n << " T " << p.temperature << " k " << p.top_k << " p " << p.top_p << " m " << p.min_p;
    }
  }
  EXPECT_LE(differing, 6);
}

TEST(TruncatedDistribution, SmallCasesByHand) {
  TruncatedDistribution d;
  SamplingParams p;
  p.temperature = 1;
  // Shares 0.5, 0.25, 0.125, 0.125.
  const std::vector<float> logits = {std::log(1.0f), std::log(4.0f), std::log(2.0f), std::log(1.0f)};
  const auto kept = [&](int64_t k, float top_p, float min_p) {
    p.top_k = k; p.top_p = top_p; p.min_p = min_p;
    d.Build(logits, logits[1], p);
    return d.Kept();
  };
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(kept(0, 1, 0), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(kept(1, 1, 0), (Ids{1}));
  EXPECT_EQ(kept(3, 1, 0), (Ids{0, 1, 2}));        // of two equal ones the lower id
  EXPECT_EQ(kept(0, 1e-30f, 0), (Ids{1}));         // never empty
  EXPECT_EQ(kept(0, 0.6f, 0), (Ids{1, 2}));
  EXPECT_EQ(kept(0, 0.8f, 0), (Ids{0, 1, 2}));
  EXPECT_EQ(kept(0, 1, 0.4f), (Ids{1, 2}));
  EXPECT_EQ(kept(0, 1, 1), (Ids{1}));
  EXPECT_EQ(kept(2, 0.66f, 0), (Ids{1}));          // 0.5/0.75 = 0.667 reaches 0.66: top_p counts after top_k
  EXPECT_EQ(kept(0, 0.66f, 0), (Ids{1, 2}));
}

TEST(TruncatedDistribution, DrawsFollowTheShares) {
  std::mt19937_64 random(5);
  TruncatedDistribution d;
  for (int trial = 0; trial < 12; ++trial) {
    const std::vector<float> logits = RandomLogits(random, 40);
    SamplingParams p;
    p.temperature = 0.7f + 0.2f * static_cast<float>(trial % 4);
    if (trial % 3 == 1) p.top_k = 9;
    if (trial % 3 == 2) { p.top_p = 0.9f; p.min_p = 0.001f; }
    d.Build(logits, *std::max_element(logits.begin(), logits.end()), p);
    const auto want = Naive(logits, p);
    double all = 0;
    for (const Token& t : want) all += t.weight;
    constexpr int kDraws = 200000;
    std::map<int32_t, int> seen;
    for (int i = 0; i < kDraws; ++i) ++seen[d.Draw(UniformDraw(9, static_cast<uint64_t>(trial), static_cast<uint64_t>(i)))];
    int outside = kDraws;
    for (const Token& t : want) {
      const double expected = kDraws * t.weight / all;
      EXPECT_NEAR(seen[t.id], expected, 5 * std::sqrt(expected) + 1) << "trial " << trial << " token " << t.id;
      outside -= seen[t.id];
    }
    EXPECT_EQ(outside, 0) << "a filtered token was drawn";
  }
}

TEST(TruncatedDistribution, TheEndsOfTheUnitIntervalGiveKeptTokens) {
  std::mt19937_64 random(6);
  TruncatedDistribution d;
  for (int trial = 0; trial < 500; ++trial) {
    const std::vector<float> logits = RandomLogits(random, 2 + random() % 300);
    SamplingParams p;
    p.temperature = 1;
    p.top_p = trial % 2 ? 0.5f : 1;
    d.Build(logits, *std::max_element(logits.begin(), logits.end()), p);
    const auto kept = d.Kept();
    for (double u : {0.0, 1 - 0x1p-53}) {
      const int32_t token = d.Draw(u);
      EXPECT_TRUE(std::binary_search(kept.begin(), kept.end(), token));
      EXPECT_GT(logits[static_cast<size_t>(token)], -std::numeric_limits<float>::infinity());
    }
  }
}

}  // namespace
}  // namespace halfbyte::engine
