#include "engine/sequence_state.h"

#include <gtest/gtest.h>

#include <cstring>

#include "fake_model.h"
#include "kernels/create_backend.h"

namespace halfbyte::engine {
namespace {

std::vector<int32_t> Count(int n, int first = 1) {
  std::vector<int32_t> ids;
  for (int i = 0; i < n; ++i) ids.push_back(first + i);
  return ids;
}

TEST(SequenceStates, PromptBlocksAreSharedGeneratedOnesAreNot) {
  for (const PrefixCache mode : {PrefixCache::kOff, PrefixCache::kOn, PrefixCache::kGenerated}) {
    FakeModel model({.block_tokens = 16, .blocks = 20});
    SequenceStates states(model, mode);
    const std::vector<int32_t> ids = Count(80);
    SequenceState a;
    ASSERT_TRUE(*states.Open(a, std::span(ids).first(40)));
    EXPECT_EQ(a.tokens, 0);
    ASSERT_TRUE(states.Reserve(a, 80));
    EXPECT_EQ(a.blocks.size(), 5u);
    states.Advance(a, 40, ids, 40);
    states.Advance(a, 80, ids, 40);  // positions 40.. are generated rows

    SequenceState b;
    ASSERT_TRUE(*states.Open(b, ids));
    EXPECT_EQ(b.tokens, mode == PrefixCache::kOff ? 0 : mode == PrefixCache::kOn ? 32 : 64) << "never the whole prompt: its last row must run";
    for (size_t i = 0; i < b.blocks.size(); ++i) EXPECT_EQ(b.blocks[i], a.blocks[i]);
    EXPECT_EQ(states.pool().owned(), 5);
    EXPECT_EQ(states.Shared(ids), static_cast<int64_t>(b.blocks.size()));
    states.Close(a);
    EXPECT_EQ(states.pool().owned(), static_cast<int64_t>(b.blocks.size()));
    states.Close(b);
    EXPECT_EQ(states.pool().owned(), 0);
    EXPECT_EQ(states.Shared(ids), 0) << "cached blocks without an owner are not free of charge";
  }
}

TEST(SequenceStates, AWholeBlockPromptIsFoundUpToTheBlockBefore) {
  FakeModel model({.block_tokens = 16, .blocks = 20});
  SequenceStates states(model, PrefixCache::kOn);
  const std::vector<int32_t> ids = Count(32);
  SequenceState a, b;
  ASSERT_TRUE(*states.Open(a, ids));
  ASSERT_TRUE(states.Reserve(a, 32));
  states.Advance(a, 32, ids, 32);
  ASSERT_TRUE(*states.Open(b, ids));
  EXPECT_EQ(b.tokens, 16);
  SequenceState all_rows;
  ASSERT_TRUE(*states.Open(all_rows, ids, false));
  EXPECT_EQ(all_rows.tokens, 0);
}

TEST(SequenceStates, ReserveTakesAllOrNothing) {
  FakeModel model({.block_tokens = 16, .blocks = 3});
  SequenceStates states(model, PrefixCache::kOff);
  SequenceState a, b;
  ASSERT_TRUE(*states.Open(a, Count(5)));
  ASSERT_TRUE(*states.Open(b, Count(5)));
  ASSERT_TRUE(states.Reserve(a, 17));
  EXPECT_FALSE(states.Reserve(b, 17));
  EXPECT_EQ(b.blocks.size(), 0u);
  EXPECT_EQ(states.pool().available(), 1);
  EXPECT_TRUE(states.Reserve(a, 32));
  EXPECT_TRUE(states.Reserve(b, 16));
}

TEST(SequenceStates, BlocksOutOfTheWindowComeBack) {
  FakeModel model({.block_tokens = 16, .blocks = 4, .window = 20});
  SequenceStates states(model, PrefixCache::kOff);
  const std::vector<int32_t> ids = Count(400);
  SequenceState a;
  ASSERT_TRUE(*states.Open(a, std::span(ids).first(10)));
  for (int64_t t = 1; t <= 400; ++t) {
    ASSERT_TRUE(states.Reserve(a, t)) << t;
    states.Advance(a, t, ids, 10);
    // The query at position t sees t-19 ... t: every block that holds one of them is still owned.
    const int64_t first_seen = std::max<int64_t>(0, t - 19) / 16;
    EXPECT_EQ(a.first_kept, first_seen) << t;
    EXPECT_EQ(states.pool().owned(), static_cast<int64_t>(a.blocks.size()) - first_seen);
  }
  states.Close(a);
  EXPECT_EQ(states.pool().owned(), 0);
}

TEST(SequenceStates, SlotsAreClearedAndRunOut) {
  FakeModel model({.slots = 1, .paged = false, .fixed = true});
  SequenceStates states(model, PrefixCache::kOn);
  EXPECT_EQ(states.mode(), PrefixCache::kOff);
  SequenceState a, b;
  ASSERT_TRUE(*states.Open(a, Count(5)));
  EXPECT_EQ(a.slot, 0);
  EXPECT_FALSE(*states.Open(b, Count(5)));
  states.Close(a);
  EXPECT_TRUE(*states.Open(b, Count(5)));
}

// A made-up recurrent layer on the real pool's memory: s = s / 2 + token, a vector of 8 floats a slot; logit t = s[t % 8].
class RecurrentLayer : public StepRunner {
 public:
  RecurrentLayer() : backend_(*kernels::CreateBackend("reference", {})) {
    pool_ = std::move(*model::StatePool::Create(*backend_, {model::FixedState{kBytes}, model::PagedState{{1, 16, 16, tensor::DType::kF32}}, model::FixedState{kBytes}}, 6, 3));
    traits_ = {16, 1000, {}, {.block_tokens = 16, .blocks = 6, .slots = 3, .fixed = true}};
  }
  const ModelTraits& traits() const override { return traits_; }
  base::Result<kernels::Matrix> Run(const model::Step& step) override {
    for (const kernels::SequenceRows& s : step.sequences)
      for (int64_t r = 0; r < s.rows; ++r)
        for (int layer : {0, 2}) {
          float* state = reinterpret_cast<float*>(pool_->Slot(layer, s.slot));
          for (int i = 0; i < 8; ++i) state[i] = state[i] / 2 + static_cast<float>(step.tokens[static_cast<size_t>(s.first_row + r)] * (layer + 1) + i);
        }
    return kernels::Matrix();
  }
  base::Status ClearSlot(int64_t slot) override { return pool_->ClearSlot(slot); }
  base::Status CopyBlock(int64_t from, int64_t to) override { return pool_->CopyBlock(from, to); }
  base::Status CopySlot(int64_t from, int64_t to) override { return pool_->CopySlot(from, to); }

  std::vector<float> Read(const SequenceState& s) const {
    std::vector<float> both(16);
    std::memcpy(both.data(), pool_->Slot(0, s.slot), kBytes);
    std::memcpy(both.data() + 8, pool_->Slot(2, s.slot), kBytes);
    return both;
  }
  std::byte* Block(int32_t block) { return pool_->Kv(1).data + block * kernels::KvBlockBytes(pool_->Kv(1).spec); }
  int64_t BlockBytes() const { return kernels::KvBlockBytes(pool_->Kv(1).spec); }

  void Feed(SequenceStates& states, SequenceState& s, std::vector<int32_t>& ids, std::vector<int32_t> more) {
    ASSERT_TRUE(states.Reserve(s, s.tokens + static_cast<int64_t>(more.size())));
    const kernels::SequenceRows rows{0, static_cast<int64_t>(more.size()), s.tokens, s.blocks.data(), s.slot};
    ASSERT_TRUE(Run({more, {&rows, 1}, 0, {}}));
    ids.insert(ids.end(), more.begin(), more.end());
    states.Advance(s, s.tokens + static_cast<int64_t>(more.size()), ids, 0);
  }

 private:
  static constexpr int64_t kBytes = 8 * sizeof(float);
  std::unique_ptr<kernels::Backend> backend_;
  std::unique_ptr<model::StatePool> pool_;
  ModelTraits traits_;
};

TEST(SequenceStates, ASnapshotOfARecurrentStateBringsItBack) {
  RecurrentLayer layer;
  SequenceStates states(layer, PrefixCache::kOff);
  SequenceState s;
  std::vector<int32_t> ids;
  ASSERT_TRUE(*states.Open(s, Count(3)));
  EXPECT_EQ(layer.Read(s), std::vector<float>(16, 0)) << "a new sequence starts from zero";
  layer.Feed(states, s, ids, Count(20));
  std::memset(layer.Block(s.blocks[1]), 7, static_cast<size_t>(layer.BlockBytes()));
  const auto before = layer.Read(s);

  auto snapshot = *states.Fork(s);
  ASSERT_TRUE(snapshot);
  EXPECT_NE(snapshot->slot, s.slot);
  EXPECT_EQ(snapshot->blocks[0], s.blocks[0]) << "a whole block is shared";
  EXPECT_NE(snapshot->blocks[1], s.blocks[1]) << "a block begun is copied";
  EXPECT_EQ(std::memcmp(layer.Block(snapshot->blocks[1]), layer.Block(s.blocks[1]), static_cast<size_t>(layer.BlockBytes())), 0);

  std::vector<int32_t> other = ids;
  layer.Feed(states, s, ids, {9, 9, 9});
  EXPECT_NE(layer.Read(s), before);
  EXPECT_EQ(layer.Read(*snapshot), before);
  layer.Feed(states, *snapshot, other, {9, 9, 9});
  EXPECT_EQ(layer.Read(*snapshot), layer.Read(s)) << "the same tokens from the same past";

  // A slot that was used is cleared for its next owner.
  const int32_t slot = s.slot;
  states.Close(s);
  SequenceState fresh;
  ASSERT_TRUE(*states.Open(fresh, Count(3)));
  EXPECT_EQ(fresh.slot, slot);
  EXPECT_EQ(layer.Read(fresh), std::vector<float>(16, 0));

  states.Close(*snapshot);
  states.Close(fresh);
  EXPECT_EQ(states.pool().owned(), 0);
  EXPECT_EQ(states.free_slots(), 3);
}

TEST(SequenceStates, ForkNeedsRoom) {
  FakeModel model({.block_tokens = 16, .blocks = 2});
  SequenceStates states(model, PrefixCache::kOff);
  const std::vector<int32_t> ids = Count(20);
  SequenceState a;
  ASSERT_TRUE(*states.Open(a, ids));
  ASSERT_TRUE(states.Reserve(a, 20));
  states.Advance(a, 20, ids, 20);
  const auto fork = states.Fork(a);
  ASSERT_TRUE(fork);
  EXPECT_FALSE(*fork);
  EXPECT_EQ(states.pool().references(a.blocks[0]), 1);
}

}  // namespace
}  // namespace halfbyte::engine
