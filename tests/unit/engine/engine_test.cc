#include "engine/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

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

// Many callers, cancels, waiting and metrics at once; meant for ThreadSanitizer as much as for the results.
TEST(Engine, ManyThreadsSubmitCancelAndWatch) {
  auto fake = std::make_unique<FakeModel>(Paged(30));
  const FakeModel& model = *fake;
  auto engine = Engine::Create(std::move(fake), EngineOptions{.max_batch = 6, .prefill_chunk = 32});
  std::atomic<int> right = 0, ended = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        const Request request = Prompt({t, i, 3, 1, 4}, 5 + i);
        if (i % 5 == 4) {  // fire and cancel
          Request r = request;
          r.max_tokens = 400;
          r.on_event = [&](Event&& e) { ended += e.finish.has_value(); };
          const auto id = engine->Submit(r);
          if (!id) { ADD_FAILURE(); continue; }
          if (i % 2) std::this_thread::yield();
          engine->Cancel(*id);
          continue;
        }
        const auto got = engine->Generate(request);
        right += got && got->tokens == model.RunAlone(request, 480).tokens;
      }
    });
  }
  std::atomic<bool> stop = false;
  std::thread watcher([&] {
    while (!stop) {
      const EngineMetrics m = engine->Metrics();
      EXPECT_LE(m.running, 6);
      EXPECT_LE(m.kv_blocks_owned, m.kv_blocks);
      engine->BetweenSteps([] {});
    }
  });
  for (std::thread& t : threads) t.join();
  stop = true;
  watcher.join();
  EXPECT_EQ(right, 80);
  engine.reset();
  EXPECT_EQ(ended, 20);
}

TEST(Engine, ShuttingDownEndsEveryRequest) {
  auto engine = Engine::Create(std::make_unique<FakeModel>(Paged(200)), EngineOptions{.max_batch = 2});
  std::atomic<int> aborted = 0;
  for (int i = 0; i < 10; ++i) {
    Request r = Prompt({i}, 3000);
    r.on_event = [&](Event&& e) { aborted += e.finish && e.finish->reason == FinishReason::kAbort && e.finish->error; };
    ASSERT_TRUE(engine->Submit(std::move(r)));
  }
  engine.reset();
  EXPECT_EQ(aborted, 10);
}

TEST(Engine, AFullQueueRefusesWithUnavailable) {
  auto engine = Engine::Create(std::make_unique<FakeModel>(Paged(200)), EngineOptions{.max_batch = 1, .max_queue = 3});
  int refused = 0;
  for (int i = 0; i < 10; ++i) {
    const auto id = engine->Submit(Prompt({1, 2, 3}, 3000));
    if (id) continue;
    EXPECT_EQ(id.error().code(), base::ErrorCode::kUnavailable);
    ++refused;
  }
  EXPECT_GE(refused, 6) << "one may run, three may wait";
}

TEST(Engine, CancelFromInsideTheEventIsFine) {
  auto engine = Engine::Create(std::make_unique<FakeModel>(Paged(20)), EngineOptions{});
  std::promise<FinishReason> end;
  Request r = Prompt({5}, 300);
  r.on_event = [&](Event&& e) {
    if (e.finish) end.set_value(e.finish->reason);
    else engine->Cancel(e.request);
  };
  ASSERT_TRUE(engine->Submit(std::move(r)));
  EXPECT_EQ(end.get_future().get(), FinishReason::kAbort);
  engine->BetweenSteps([] {});
  EXPECT_EQ(engine->Metrics().kv_blocks_owned, 0);
}

TEST(Engine, NewWeightsWaitForStartedRequestsAndHoldTheOthers) {
  auto fake = std::make_unique<FakeModel>(Paged(60));
  FakeModel& model = *fake;
  auto engine = Engine::Create(std::move(fake), EngineOptions{.max_batch = 1});
  const Request long_one = Prompt({9, 9, 8}, 600), next = Prompt({9, 9, 8, 7}, 20);
  const auto want_old = model.RunAlone(long_one, 960).tokens;
  std::promise<void> started;
  std::atomic<int> tokens = 0;
  auto running = std::async(std::launch::async, [&] { return engine->Generate(long_one, [&](int32_t) { if (tokens++ == 0) started.set_value(); return true; }); });
  started.get_future().wait();
  auto waiting = std::async(std::launch::async, [&] { return engine->Generate(next); });
  EXPECT_TRUE(engine->ChangeWeights([&] { model.weights = 5; EXPECT_EQ(tokens, 600); }, Engine::Started::kFinish));
  EXPECT_EQ(running.get()->tokens, want_old);
  const auto after = waiting.get();
  const auto again = engine->Generate(next);
  EXPECT_EQ(again->tokens, model.RunAlone(next, 960).tokens);
  EXPECT_EQ(after->tokens.size(), 20u);
}

TEST(Engine, NewWeightsAbortStartedRequestsWhereAsked) {
  auto fake = std::make_unique<FakeModel>(Paged(60));
  FakeModel& model = *fake;
  auto engine = Engine::Create(std::move(fake), EngineOptions{});
  std::promise<void> started;
  std::atomic<int> tokens = 0;
  auto running = std::async(std::launch::async, [&] {
    return engine->Generate(Prompt({9, 9, 8}, 900), [&](int32_t) { if (tokens++ == 0) started.set_value(); return true; });
  });
  started.get_future().wait();
  EXPECT_TRUE(engine->ChangeWeights([&] { model.weights = 5; }, Engine::Started::kAbort));
  const auto aborted = running.get();
  EXPECT_TRUE(aborted->finish.reason == FinishReason::kAbort || aborted->tokens.size() == 900u);
  const Request request = Prompt({9, 9, 8}, 20);
  EXPECT_EQ(engine->Generate(request)->tokens, model.RunAlone(request, 960).tokens);
}

TEST(Engine, WhilePausedRequestsWait) {
  auto engine = Engine::Create(std::make_unique<FakeModel>(Paged(60)), EngineOptions{});
  engine->Pause(true);
  auto waiting = std::async(std::launch::async, [&] { return engine->Generate(Prompt({1}, 3)); });
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(30)), std::future_status::timeout);
  engine->Pause(false);
  EXPECT_EQ(waiting.get()->tokens.size(), 3u);
}

TEST(Engine, AFlushedCacheFindsNothing) {
  auto engine = Engine::Create(std::make_unique<FakeModel>(Paged(60)), EngineOptions{});
  const Request request = Prompt(std::vector<int32_t>(50, 3), 2);
  EXPECT_EQ(engine->Generate(request)->finish.usage.cached_tokens, 0);
  EXPECT_EQ(engine->Generate(request)->finish.usage.cached_tokens, 48);
  engine->FlushCache();
  EXPECT_EQ(engine->Generate(request)->finish.usage.cached_tokens, 0);
}

}  // namespace
}  // namespace halfbyte::engine
