#include "engine/logits_scan.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace halfbyte::engine {
namespace {

std::vector<float> RandomLogits(size_t n, float spread, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> logits(n);
  for (float& l : logits) l = normal(random);
  return logits;
}

TEST(LogitsScan, PeakIsTheLowestIdOfTheLargest) {
  for (size_t n : {1u, 2u, 1023u, 1024u, 1025u, 5000u}) {
    std::vector<float> logits = RandomLogits(n, 3, n);
    const size_t first = n / 3, second = n - 1;
    logits[first] = logits[second] = 100;
    const auto peak = FindPeak(logits);
    ASSERT_TRUE(peak) << n;
    EXPECT_EQ(peak->id, static_cast<int32_t>(first)) << n;
    EXPECT_EQ(peak->value, 100) << n;
  }
}

TEST(LogitsScan, NanAndPlusInfinityAnywhereAreErrorsMinusInfinityIsNot) {
  for (size_t n : {1u, 7u, 1024u, 3001u}) {
    for (size_t at : {size_t{0}, n / 2, n - 1}) {
      for (float wild : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        std::vector<float> logits(n, 1.0f);
        logits[at] = wild;
        const auto peak = FindPeak(logits);
        ASSERT_FALSE(peak) << n << " " << at;
        EXPECT_EQ(peak.error().code(), base::ErrorCode::kInternal);
      }
      std::vector<float> logits(n + 1, -5.0f);
      logits[at] = -std::numeric_limits<float>::infinity();
      EXPECT_TRUE(FindPeak(logits));
    }
    EXPECT_FALSE(FindPeak(std::vector<float>(n, -std::numeric_limits<float>::infinity())));
  }
}

TEST(LogitsScan, ExpWeightsAgreeWithTheLibrary) {
  std::vector<float> x;
  for (double v = 0; v > -100; v -= 0.00137) x.push_back(static_cast<float>(v));
  x.push_back(-std::numeric_limits<float>::infinity());
  std::vector<float> out(x.size());
  ExpWeights(x, 0, 1, out.data());
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] < -87) EXPECT_EQ(out[i], 0) << x[i];
    else EXPECT_NEAR(out[i] / std::exp(static_cast<double>(x[i])), 1, 3e-7) << x[i];
  }
  EXPECT_EQ(out[0], 1);
}

TEST(LogitsScan, LogprobsAgreeWithDoubleArithmetic) {
  for (size_t n : {2u, 512u, 4096u, 151936u}) {
    const std::vector<float> logits = RandomLogits(n, 4, 7 * n);
    double sum = 0;
    for (float l : logits) sum += std::exp(static_cast<double>(l));
    const int32_t token = static_cast<int32_t>(n / 2);
    const auto got = ComputeLogprobs(logits, token, 5);
    ASSERT_TRUE(got);
    EXPECT_NEAR(got->logprob, logits[n / 2] - std::log(sum), 3e-6);

    std::vector<int32_t> order(n);
    for (size_t i = 0; i < n; ++i) order[i] = static_cast<int32_t>(i);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)]; });
    ASSERT_EQ(got->top.size(), std::min<size_t>(5, n));
    for (size_t i = 0; i < got->top.size(); ++i) {
      EXPECT_EQ(got->top[i].token, order[i]);
      EXPECT_NEAR(got->top[i].logprob, logits[static_cast<size_t>(order[i])] - std::log(sum), 3e-6);
    }
    EXPECT_EQ(order[static_cast<size_t>(got->rank - 1)], token);
  }
}

TEST(LogitsScan, TopLogprobsOfEqualLogitsComeInOrderOfIds) {
  const auto got = ComputeLogprobs(std::vector<float>{1, 2, 2, 2, 1}, 3, 4);
  ASSERT_TRUE(got);
  ASSERT_EQ(got->top.size(), 4u);
  EXPECT_EQ(got->top[0].token, 1);
  EXPECT_EQ(got->top[1].token, 2);
  EXPECT_EQ(got->top[2].token, 3);
  EXPECT_EQ(got->top[3].token, 0);
  EXPECT_EQ(got->rank, 1);
}

TEST(LogitsScan, ATokenThatCannotComeHasLogprobMinusInfinity) {
  const auto got = ComputeLogprobs(std::vector<float>{0, -std::numeric_limits<float>::infinity()}, 1, 0);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->logprob, -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(got->top.empty());
}

}  // namespace
}  // namespace halfbyte::engine
