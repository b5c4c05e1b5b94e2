#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <map>

#include "engine/executor.h"
#include "fake_model.h"

namespace halfbyte::engine {
namespace {

// A scheduler over the made-up model, stepped by hand.
struct Bench {
  explicit Bench(StateGeometry geometry, SchedulerOptions options = {}, PrefixCache prefix = PrefixCache::kOff)
      : model(geometry), states(model, prefix), scheduler(options, model.traits(), states), executor(model, scheduler) {}

  struct Seen {
    std::vector<int32_t> tokens;
    std::vector<int64_t> token_steps;  // number of the step that gave each token
    std::vector<PositionLogprobs> prompt_logprobs;
    std::optional<Finish> finish;
    int64_t finish_step = -1;
  };

  RequestId Add(Request r) {
    const RequestId id = next++;
    Seen* s = &seen[id];
    r.on_event = [this, s](Event&& e) {
      if (e.token) { s->tokens.push_back(*e.token); s->token_steps.push_back(step); }
      for (auto& p : e.prompt_logprobs) s->prompt_logprobs.push_back(std::move(p));
      if (e.finish) { EXPECT_FALSE(s->finish); s->finish = *e.finish; s->finish_step = step; }
    };
    const auto added = scheduler.Add(id, std::move(r));
    EXPECT_TRUE(added) << added.error().ToString();
    return id;
  }
  bool Step() { ++step; return executor.Step(); }
  void Drain() { for (int i = 0; Step(); ++i) ASSERT_LT(i, 100000); }

  FakeModel model;
  SequenceStates states;
  Scheduler scheduler;
  Executor executor;
  std::map<RequestId, Seen> seen;
  RequestId next = 1;
  int64_t step = 0;
};

Request Prompt(int64_t tokens, int64_t max_tokens, int32_t salt = 1) {
  Request r;
  for (int64_t i = 0; i < tokens; ++i) r.prompt.push_back(static_cast<int32_t>(MixDigest(static_cast<uint64_t>(salt), static_cast<uint64_t>(i)) % 29));
  r.max_tokens = max_tokens;
  r.ignore_eos = true;
  return r;
}

TEST(Scheduler, AShortPromptIsNotStuckBehindLongOnes) {
  Bench b({.block_tokens = 16, .blocks = 500}, {.max_batch = 8, .prefill_rows = 64});
  const RequestId long_one = b.Add(Prompt(1000, 1)), long_two = b.Add(Prompt(1000, 1, 2));
  b.Step();
  const RequestId small = b.Add(Prompt(30, 1, 3));
  b.Step();
  EXPECT_TRUE(b.seen[small].finish) << "served in the first step after its arrival";
  b.Drain();
  EXPECT_TRUE(b.seen[long_one].finish);
  EXPECT_LT(b.seen[long_one].finish_step, b.seen[long_two].finish_step);
}

TEST(Scheduler, AStreamOfShortPromptsDoesNotStarveALongOne) {
  Bench b({.block_tokens = 16, .blocks = 500}, {.max_batch = 8, .prefill_rows = 64});
  const RequestId long_one = b.Add(Prompt(640, 1));
  while (!b.seen[long_one].finish) {
    for (int i = 0; i < 2; ++i) b.Add(Prompt(30, 1, static_cast<int32_t>(b.next)));
    b.Step();
    ASSERT_LT(b.step, 100);
  }
  EXPECT_LE(b.step, 20) << "half of 64 rows a step at least";
}

TEST(Scheduler, AShortPromptStartsAtOnceWhileManyDecode) {
  Bench b({.block_tokens = 16, .blocks = 500}, {.max_batch = 64, .prefill_rows = 64});
  for (int i = 0; i < 32; ++i) b.Add(Prompt(10, 100, i));
  for (int i = 0; i < 10; ++i) b.Step();
  const RequestId late = b.Add(Prompt(32, 5, 99));
  b.Step();
  EXPECT_EQ(b.seen[late].tokens.size(), 1u);
  for (RequestId id = 1; id <= 32; ++id) EXPECT_EQ(b.seen[id].token_steps.back(), b.step) << "every stream got its token in the same step";
}

TEST(Scheduler, NobodyOvertakesALargeRequestThatWaitsForMemory) {
  Bench b({.block_tokens = 16, .blocks = 20}, {.max_batch = 8, .prefill_rows = 512});
  b.Add(Prompt(150, 20));
  b.Step();
  const RequestId large = b.Add(Prompt(200, 2, 2)), small = b.Add(Prompt(5, 2, 3));
  b.Step();
  EXPECT_EQ(b.scheduler.waiting(), 2);
  b.Drain();
  EXPECT_LE(b.seen[large].token_steps[0], b.seen[small].token_steps[0]);
}

TEST(Scheduler, TheOldestIsNeverPreemptedAndTheYoungestComeBackInOrder) {
  Bench b({.block_tokens = 16, .blocks = 12}, {.max_batch = 4, .prefill_rows = 64});
  std::vector<Request> requests;
  for (int i = 0; i < 4; ++i) requests.push_back(Prompt(17, 120, i));
  for (const Request& r : requests) b.Add(r);
  b.Drain();
  EXPECT_GT(b.scheduler.counters().preemptions, 0);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(b.seen[i + 1].tokens, b.model.RunAlone(requests[i], 192).tokens);
  const auto& oldest = b.seen[1].token_steps;
  EXPECT_EQ(oldest.back() - oldest.front(), 119) << "a token every step";
  for (RequestId i = 1; i < 4; ++i) EXPECT_LE(b.seen[i].finish_step, b.seen[i + 1].finish_step);
}

TEST(Scheduler, CancellingGivesTheBlocksBackAtOnce) {
  Bench b({.block_tokens = 16, .blocks = 40}, {.max_batch = 8, .prefill_rows = 64});
  const RequestId decoding = b.Add(Prompt(20, 100)), prefilling = b.Add(Prompt(300, 100, 2));
  b.Step();
  b.Step();
  ASSERT_GT(b.seen[decoding].tokens.size(), 0u);
  ASSERT_EQ(b.seen[prefilling].tokens.size(), 0u);
  const RequestId waiting = b.Add(Prompt(3, 3));
  for (const RequestId id : {decoding, prefilling, waiting}) {
    EXPECT_TRUE(b.scheduler.Cancel(id));
    ASSERT_TRUE(b.seen[id].finish);
    EXPECT_EQ(b.seen[id].finish->reason, FinishReason::kAbort);
    EXPECT_FALSE(b.scheduler.Cancel(id));
  }
  EXPECT_EQ(b.states.pool().owned(), 0);
  EXPECT_TRUE(b.scheduler.idle());
  EXPECT_FALSE(b.Step());
}

TEST(Scheduler, TheQueueHasALimit) {
  Bench b({.block_tokens = 16, .blocks = 40}, {.max_batch = 1, .max_queue = 2});
  b.Add(Prompt(3, 50));
  b.Step();
  b.Add(Prompt(3, 50));
  b.Add(Prompt(3, 50));
  const auto full = b.scheduler.Add(99, Prompt(3, 50));
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code(), base::ErrorCode::kUnavailable);
}

TEST(Scheduler, ADeadlineEndsARequestRunningOrWaiting) {
  Bench b({.block_tokens = 16, .blocks = 40}, {.max_batch = 1});
  Request r = Prompt(3, 500);
  r.deadline = Clock::now() - std::chrono::seconds(1);
  const RequestId running = b.Add(Prompt(3, 5)), late = b.Add(r);
  b.Step();
  ASSERT_TRUE(b.seen[late].finish);
  EXPECT_EQ(b.seen[late].finish->reason, FinishReason::kAbort);
  ASSERT_TRUE(b.seen[late].finish->error);
  EXPECT_EQ(b.seen[late].finish->error->code(), base::ErrorCode::kUnavailable);
  b.Drain();
  EXPECT_EQ(b.seen[running].finish->reason, FinishReason::kLength);
}

TEST(Scheduler, StopIdsEndTokensMinTokensAndLengths) {
  Bench b({.block_tokens = 16, .blocks = 40}, {});
  Request free_run = Prompt(5, 30);
  const auto all = b.model.RunAlone(free_run, 640).tokens;
  const int32_t third = all[2];
  ASSERT_EQ(std::count(all.begin(), all.begin() + 2, third), 0);

  Request stops = free_run;
  stops.stop_ids = {third};
  const RequestId a = b.Add(stops);
  Request later = stops;
  later.min_tokens = 6;
  const RequestId c = b.Add(later);
  const RequestId endless = b.Add([&] { Request r = free_run; r.max_tokens.reset(); return r; }());
  const RequestId none = b.Add([&] { Request r = free_run; r.max_tokens = 0; return r; }());
  b.Drain();
  EXPECT_EQ(b.seen[a].tokens, std::vector<int32_t>(all.begin(), all.begin() + 3));
  EXPECT_EQ(b.seen[a].finish->reason, FinishReason::kStop);
  EXPECT_TRUE(b.seen[a].finish->end_token);
  EXPECT_EQ(b.seen[a].finish->usage.completion_tokens, 3);
  for (int i = 0; i < 6; ++i) EXPECT_NE(b.seen[c].tokens[static_cast<size_t>(i)], third);
  EXPECT_EQ(b.seen[endless].tokens.size(), 635u) << "prompt and answer fill the model's length";
  EXPECT_EQ(b.seen[endless].finish->reason, FinishReason::kLength);
  EXPECT_TRUE(b.seen[none].tokens.empty());
  EXPECT_EQ(b.seen[none].finish->reason, FinishReason::kLength);
}

TEST(Scheduler, PromptLogprobsComeOnceInOrderWhateverTheChunksAndPreemptions) {
  Request r = Prompt(70, 4, 5);
  r.prompt_logprobs = 2;
  Bench whole({.block_tokens = 16, .blocks = 40}, {.prefill_rows = 512});
  const RequestId id = whole.Add(r);
  whole.Drain();
  const auto want = whole.seen[id].prompt_logprobs;
  ASSERT_EQ(want.size(), 69u);

  Bench chunked({.block_tokens = 16, .blocks = 10}, {.max_batch = 2, .prefill_rows = 24, .logit_rows = 5}, PrefixCache::kOn);
  const RequestId older = chunked.Add(Prompt(40, 70));
  for (int i = 0; i < 3; ++i) chunked.Step();
  const RequestId again = chunked.Add(r);
  while (!chunked.seen[again].finish) {
    ASSERT_LT(chunked.step, 1000);
    chunked.Step();
    // Take its memory away in the middle of the prompt.
    if (chunked.step == 7) { EXPECT_LT(chunked.seen[again].prompt_logprobs.size(), 69u); chunked.scheduler.ForgetStates(); }
  }
  const auto& got = chunked.seen[again].prompt_logprobs;
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(got[i].logprob, want[i].logprob) << i;
    EXPECT_EQ(got[i].top, want[i].top);
  }
  EXPECT_EQ(chunked.seen[again].tokens, whole.seen[id].tokens);
  chunked.Drain();
  EXPECT_EQ(chunked.seen[older].tokens, chunked.model.RunAlone(Prompt(40, 70), 160).tokens);
}

TEST(Scheduler, ARepeatedPromptIsFoundInThePrefixCache) {
  Bench b({.block_tokens = 16, .blocks = 40}, {}, PrefixCache::kOn);
  const Request r = Prompt(100, 3);
  const RequestId first = b.Add(r);
  b.Drain();
  const int64_t rows = b.scheduler.counters().prompt_rows;
  const RequestId second = b.Add(r);
  b.Drain();
  EXPECT_EQ(rows, 100);
  EXPECT_EQ(b.scheduler.counters().prompt_rows, 104) << "96 of 100 tokens are in whole blocks";
  EXPECT_EQ(b.seen[first].finish->usage.cached_tokens, 0);
  EXPECT_EQ(b.seen[second].finish->usage.cached_tokens, 96);
  EXPECT_EQ(b.seen[first].tokens, b.seen[second].tokens);
}

TEST(Scheduler, NewWeightsNeverMeetOldState) {
  Bench b({.block_tokens = 16, .blocks = 40}, {}, PrefixCache::kOn);
  const Request r = Prompt(60, 10);
  b.Add(r);
  b.Drain();
  const RequestId running = b.Add(Prompt(60, 30, 2));
  for (int i = 0; i < 4; ++i) b.Step();
  b.scheduler.ForgetStates();
  b.model.weights = 2;
  const RequestId after = b.Add(r);
  b.Drain();
  EXPECT_EQ(b.seen[after].tokens, b.model.RunAlone(r, 640).tokens);
  EXPECT_EQ(b.seen[after].finish->usage.cached_tokens, 0);
  EXPECT_EQ(b.seen[running].tokens.size(), 30u);
}

TEST(Executor, AFailedStepEndsItsOwnRequestsOnly) {
  Bench b({.block_tokens = 16, .blocks = 40}, {.max_batch = 2});
  b.model.fail_at_step = 3;
  const RequestId a = b.Add(Prompt(5, 20)), c = b.Add(Prompt(5, 20, 2)), waits = b.Add(Prompt(5, 20, 3));
  b.Drain();
  for (const RequestId id : {a, c}) {
    EXPECT_EQ(b.seen[id].finish->reason, FinishReason::kError);
    ASSERT_TRUE(b.seen[id].finish->error);
    EXPECT_EQ(b.seen[id].tokens.size(), 3u);
  }
  EXPECT_EQ(b.seen[waits].finish->reason, FinishReason::kLength);
  EXPECT_EQ(b.seen[waits].tokens, b.model.RunAlone(Prompt(5, 20, 3), 640).tokens);
  EXPECT_EQ(b.executor.counters().failed_steps, 1);
  EXPECT_EQ(b.states.pool().owned(), 0);
}

TEST(Executor, ABrokenRowEndsItsRequestNotItsNeighbours) {
  for (const float temperature : {0.0f, 1.0f}) {
    Bench b({.block_tokens = 16, .blocks = 40}, {});
    b.model.nan_at_step = 4;
    Request r = Prompt(5, 20);
    r.sampling.temperature = temperature;
    const RequestId broken = b.Add(r), fine = b.Add(Prompt(5, 20, 2));
    b.Drain();
    EXPECT_EQ(b.seen[broken].finish->reason, FinishReason::kError);
    EXPECT_EQ(b.seen[broken].tokens.size(), 4u);
    EXPECT_EQ(b.seen[fine].tokens, b.model.RunAlone(Prompt(5, 20, 2), 640).tokens);
    EXPECT_EQ(b.executor.counters().broken_rows, 1);
  }
}

// K and V behind broken logits may be broken too, also those of earlier chunks, which had no logits to judge them by.
TEST(Executor, NothingOfABrokenPromptIsShared) {
  for (const int64_t chunk : {512, 32}) {
    Bench b({.block_tokens = 16, .blocks = 40}, {.prefill_rows = chunk}, PrefixCache::kOn);
    b.model.nan_at_step = chunk == 512 ? 0 : 1;
    const Request r = Prompt(60, 10);
    const RequestId broken = b.Add(r);
    b.Drain();
    EXPECT_EQ(b.seen[broken].finish->reason, FinishReason::kError);
    const RequestId after = b.Add(r);
    b.Drain();
    EXPECT_EQ(b.seen[after].finish->usage.cached_tokens, 0) << "chunks of " << chunk;
    EXPECT_EQ(b.seen[after].tokens, b.model.RunAlone(r, 640).tokens);
  }
}

// A request that forbids itself every token is at fault, not the model.
class NothingMayCome : public TokenConstraint {
 public:
  std::span<const uint64_t> Allowed() override { return {&mask_, 1}; }
  void Accept(int32_t) override { ADD_FAILURE() << "no token may come"; }

 private:
  uint64_t mask_ = 0;
};

TEST(Executor, ARequestThatForbidsEverythingIsNoBrokenRow) {
  Bench b({.block_tokens = 16, .blocks = 40}, {}, PrefixCache::kOn);
  const Request good = Prompt(60, 3);
  b.Add(good);
  b.Drain();
  Request r = Prompt(20, 3, 2);
  r.constraint = std::make_shared<NothingMayCome>();
  const RequestId impossible = b.Add(r);
  b.Drain();
  EXPECT_EQ(b.seen[impossible].finish->reason, FinishReason::kError);
  ASSERT_TRUE(b.seen[impossible].finish->error);
  EXPECT_EQ(b.seen[impossible].finish->error->code(), base::ErrorCode::kInvalidArgument);
  EXPECT_EQ(b.executor.counters().broken_rows, 0);
  const RequestId again = b.Add(good);
  b.Drain();
  EXPECT_EQ(b.seen[again].finish->usage.cached_tokens, 48) << "the cache is as good as before";
}

// Allows one token, then the next, and so on.
class Staircase : public TokenConstraint {
 public:
  std::span<const uint64_t> Allowed() override { mask_ = uint64_t{1} << next_; return {&mask_, 1}; }
  void Accept(int32_t token) override { EXPECT_EQ(token, next_); ++next_; }

 private:
  int32_t next_ = 3;
  uint64_t mask_ = 0;
};

TEST(Executor, AConstraintDecidesWhatMayComeAlsoAfterAPreemption) {
  Bench b({.block_tokens = 16, .blocks = 40}, {});
  Request r = Prompt(5, 8);
  r.constraint = std::make_shared<Staircase>();
  const RequestId id = b.Add(r);
  for (int i = 0; i < 3; ++i) b.Step();
  b.scheduler.ForgetStates();
  b.Drain();
  EXPECT_EQ(b.seen[id].tokens, (std::vector<int32_t>{3, 4, 5, 6, 7, 8, 9, 10}));
}

}  // namespace
}  // namespace halfbyte::engine
