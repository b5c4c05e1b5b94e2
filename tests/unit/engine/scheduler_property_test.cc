// Random arrivals, cancellations, pools and options: every request gets exactly the tokens that it gets alone, every block comes back, and the scheduler
// never stands still.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>

#include "engine/executor.h"
#include "fake_model.h"

namespace halfbyte::engine {
namespace {

struct Arrival {
  int64_t step = 0;  // before which it is submitted
  Request request;
  int64_t cancel_step = -1;
};

struct World {
  StateGeometry geometry;
  SchedulerOptions options;
  PrefixCache prefix = PrefixCache::kOff;
  std::vector<Arrival> arrivals;
};

// The whole range from the first try on: small pools and many arrivals are what finds faults, not small numbers.
int Int(int low, int high) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high + 1)); }

Request AnyRequest(const std::vector<int32_t>& common, int64_t longest) {
  Request r;
  // Prompts share beginnings, so that the prefix cache has something to find.
  const int64_t shared = Int(0, 1) ? Int(0, static_cast<int>(std::min<int64_t>(static_cast<int64_t>(common.size()), longest - 1))) : 0;
  r.prompt.assign(common.begin(), common.begin() + shared);
  const int64_t own = Int(1, static_cast<int>(std::min<int64_t>(longest - shared, Int(0, 4) == 0 ? 200 : 20)));
  for (int64_t i = 0; i < own; ++i) r.prompt.push_back(Int(0, 28));
  if (Int(0, 5) > 0) r.max_tokens = Int(0, 60);
  if (Int(0, 2) == 0) { r.sampling.temperature = 1; r.sampling.seed = static_cast<uint64_t>(Int(0, 1000)); }
  if (Int(0, 3) == 0) { r.sampling.repetition_penalty = 1.3f; r.sampling.frequency_penalty = 0.2f; }
  if (Int(0, 3) == 0) r.stop_ids = {Int(0, 28)};
  r.ignore_eos = Int(0, 1);
  if (Int(0, 3) == 0 && r.max_tokens) r.min_tokens = Int(0, static_cast<int>(*r.max_tokens));
  return r;
}

// The next turn of a conversation: its prompt begins with an earlier request's prompt and answer. As a prompt the answer's rows are prompt rows, so
// blocks of the generated ones must not be found for it.
void FollowUp(const FakeModel& model, int64_t longest, const Request& earlier, Request& request) {
  std::vector<int32_t> prompt = earlier.prompt;
  const auto answer = model.RunAlone(earlier, longest + 1).tokens;
  prompt.insert(prompt.end(), answer.begin(), answer.end());
  prompt.insert(prompt.end(), request.prompt.begin(), request.prompt.end());
  if (static_cast<int64_t>(prompt.size()) <= longest) request.prompt = std::move(prompt);
}

World AnyWorld() {
  World w;
  const int kind = Int(0, 5);
  w.geometry.block_tokens = 16;
  w.geometry.paged = kind != 0;
  w.geometry.fixed = kind <= 1;
  w.geometry.blocks = w.geometry.paged ? Int(2, Int(0, 1) ? 10 : 40) : 0;
  w.geometry.slots = w.geometry.fixed ? Int(1, 5) : 0;
  if (kind == 2) w.geometry.window = Int(5, 60);
  w.options.max_batch = Int(1, 6);
  w.options.prefill_rows = Int(0, 1) ? Int(1, 40) : 128;
  w.options.max_length = Int(0, 2) == 0 ? Int(20, 200) : 400;
  w.options.max_queue = 1000;
  w.prefix = static_cast<PrefixCache>(Int(0, 1));
  std::vector<int32_t> common;
  for (int i = 0; i < 100; ++i) common.push_back(Int(0, 28));
  FakeModel model(w.geometry);
  SequenceStates states(model, w.prefix);
  const int64_t longest = Scheduler(w.options, model.traits(), states).max_length() - 1;
  const int n = Int(1, 20);
  for (int i = 0; i < n; ++i) {
    Arrival a;
    a.step = Int(0, Int(0, 1) ? 5 : 60);
    a.request = AnyRequest(common, longest);
    if (!w.arrivals.empty() && Int(0, 2) == 0) FollowUp(model, longest, w.arrivals[static_cast<size_t>(Int(0, i - 1))].request, a.request);
    if (Int(0, 4) == 0) a.cancel_step = a.step + Int(0, 30);
    w.arrivals.push_back(std::move(a));
  }
  return w;
}

struct Outcome {
  std::vector<int32_t> tokens;
  std::optional<Finish> finish;
};

void CheckWorld(World& w) {
  FakeModel model(w.geometry);
  SequenceStates states(model, w.prefix);
  Scheduler scheduler(w.options, model.traits(), states);
  Executor executor(model, scheduler);
  std::vector<Outcome> outcomes(w.arrivals.size());
  std::vector<bool> refused(w.arrivals.size());
  int64_t step = 0, rows = 0;
  for (const Arrival& a : w.arrivals) rows += static_cast<int64_t>(a.request.prompt.size()) + a.request.max_tokens.value_or(400);
  const int64_t patience = 60 + 40 * rows;  // steps; far more than any order needs
  for (bool busy = true; busy || step <= 75; ++step) {
    for (size_t i = 0; i < w.arrivals.size(); ++i) {
      if (w.arrivals[i].step == step) {
        Request r = w.arrivals[i].request;
        r.on_event = [&, i](Event&& e) {
          RC_ASSERT(!outcomes[i].finish);
          if (e.token) outcomes[i].tokens.push_back(*e.token);
          if (e.finish) outcomes[i].finish = *e.finish;
        };
        refused[i] = !scheduler.Add(i + 1, std::move(r));
      }
      if (w.arrivals[i].cancel_step == step) {
        const int64_t before = states.pool().owned();
        if (scheduler.Cancel(i + 1)) RC_ASSERT(states.pool().owned() <= before);
      }
    }
    busy = executor.Step();
    RC_ASSERT(step < patience);
    RC_ASSERT(model.most_rows() <= std::max<int64_t>(w.options.prefill_rows, 64) + w.options.max_batch);
  }
  RC_ASSERT(scheduler.idle());
  RC_ASSERT(states.pool().owned() == 0);
  if (w.geometry.fixed) RC_ASSERT(states.free_slots() == w.geometry.slots);
  for (size_t i = 0; i < w.arrivals.size(); ++i) {
    RC_ASSERT(!refused[i]);
    const auto alone = model.RunAlone(w.arrivals[i].request, scheduler.max_length());
    RC_ASSERT(outcomes[i].finish.has_value());
    const Outcome& got = outcomes[i];
    if (got.finish->reason == FinishReason::kAbort) {
      RC_ASSERT(w.arrivals[i].cancel_step >= 0);
      RC_ASSERT(got.tokens.size() <= alone.tokens.size());
      RC_ASSERT(std::equal(got.tokens.begin(), got.tokens.end(), alone.tokens.begin()));
    } else {
      RC_ASSERT(got.tokens == alone.tokens);
      RC_ASSERT(got.finish->reason == alone.reason);
    }
    RC_ASSERT(got.finish->usage.completion_tokens == static_cast<int64_t>(got.tokens.size()));
  }
  RC_TAG(std::string(scheduler.counters().preemptions > 0 ? "preempted" : "never preempted") + (scheduler.counters().cached_tokens > 0 ? ", cached" : ""));
}

TEST(SchedulerProperty, EveryRequestGetsTheTokensItGetsAlone) {
  EXPECT_TRUE(rc::check("every request gets the tokens it gets alone", [] {
    World w = AnyWorld();
    CheckWorld(w);
  }));
}

}  // namespace
}  // namespace halfbyte::engine
