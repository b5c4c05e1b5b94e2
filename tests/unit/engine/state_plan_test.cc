#include "engine/state_plan.h"

#include <gtest/gtest.h>

namespace halfbyte::engine {
namespace {

constexpr uint64_t kPlenty = uint64_t{1} << 40;

// Two layers of 2 heads of 64 in BF16: 2 * (2 * 2 * 64 * 2) bytes a token = 1 KiB.
std::vector<model::LayerState> Layers(int64_t window = 0) {
  const model::PagedState layer{{2, 64, 16, tensor::DType::kBF16}, window};
  return {layer, layer};
}

TEST(PlanState, AsManyBlocksAsTheSequencesMayNeed) {
  const auto g = PlanState(Layers(), {.block_tokens = 16, .sequences = 3, .max_tokens = 100}, 4096, kPlenty);
  ASSERT_TRUE(g);
  EXPECT_EQ(g->blocks, 3 * 7);
  EXPECT_TRUE(g->paged);
  EXPECT_FALSE(g->fixed);
  EXPECT_EQ(g->slots, 0);
  EXPECT_EQ(PlanState(Layers(), {.block_tokens = 16, .sequences = 2}, 4096, kPlenty)->blocks, 2 * 256) << "no max_tokens: the model's";
  EXPECT_EQ(PlanState(Layers(), {.block_tokens = 16, .sequences = 2, .cache_tokens = 50}, 4096, kPlenty)->blocks, 4) << "as asked, rounded up";
}

TEST(PlanState, AtMostHalfOfTheFreeMemoryUnlessAskedFor) {
  // 1 MiB free: half of it holds 512 tokens.
  EXPECT_EQ(PlanState(Layers(), {.block_tokens = 16, .sequences = 8}, 4096, 1 << 20)->blocks, 32);
  EXPECT_EQ(PlanState(Layers(), {.block_tokens = 16, .sequences = 8, .cache_tokens = 1000}, 4096, 1 << 20)->blocks, 63);
  const auto too_much = PlanState(Layers(), {.block_tokens = 16, .sequences = 8, .cache_tokens = 1100}, 4096, 1 << 20);
  ASSERT_FALSE(too_much);
  EXPECT_EQ(too_much.error().code(), base::ErrorCode::kOutOfMemory);
  EXPECT_NE(too_much.error().ToString().find("--kv-cache-tokens"), std::string::npos);
  const auto too_long = PlanState(Layers(), {.block_tokens = 16, .sequences = 1, .max_tokens = 600}, 4096, 1 << 20);
  ASSERT_FALSE(too_long) << "a length that was asked for must fit";
  EXPECT_NE(too_long.error().ToString().find("--max-model-len"), std::string::npos);
}

TEST(PlanState, WindowsAndFixedStates) {
  EXPECT_EQ(PlanState(Layers(128), {.block_tokens = 16}, 4096, kPlenty)->window, 128);
  auto mixed = Layers(128);
  mixed.push_back(model::PagedState{{2, 64, 16, tensor::DType::kBF16}, 0});
  EXPECT_EQ(PlanState(mixed, {.block_tokens = 16}, 4096, kPlenty)->window, 0) << "one layer that sees everything keeps every block";
  const auto recurrent = PlanState({model::FixedState{1000}}, {.block_tokens = 16, .sequences = 5}, 4096, kPlenty);
  EXPECT_EQ(recurrent->slots, 5);
  EXPECT_EQ(recurrent->blocks, 0);
  EXPECT_FALSE(recurrent->paged);
}

TEST(PlanState, BlocksAreMultiplesOfSixteen) {
  for (int64_t n : {0, 8, 24, -16}) EXPECT_FALSE(PlanState(Layers(), {.block_tokens = n}, 4096, kPlenty)) << n;
}

}  // namespace
}  // namespace halfbyte::engine
