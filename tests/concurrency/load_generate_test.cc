// Loading by several workers and generating for several callers, while others watch, cancel, flush and pause. The answers are compared with those
// of a quiet engine; under ThreadSanitizer the run is the test.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "engine/engine.h"
#include "model/load.h"

namespace halfbyte {
namespace {

constexpr const char* kModel = HALFBYTE_TEST_DATA "/models/qwen3_moe";

std::unique_ptr<engine::Engine> MakeEngine(const char* quantization, const char* device, int threads, const engine::EngineOptions& options) {
  model::LoadSettings settings;
  settings.quantization = quantization;
  settings.device = device;
  settings.threads = threads;
  std::atomic<int> reports{0};
  settings.progress = [&](const quant::LoadProgress&) { ++reports; };
  auto loaded = model::LoadModel(kModel, settings);
  EXPECT_TRUE(loaded) << loaded.error().ToString();
  EXPECT_GT(reports, 0);
  auto engine = engine::Engine::Create(std::move(loaded->model), options);
  EXPECT_TRUE(engine) << engine.error().ToString();
  return std::move(*engine);
}

engine::Request RequestFor(int caller, int round) {
  engine::Request r;
  for (int i = 0; i < 5 + 7 * caller % 23; ++i) r.prompt.push_back((caller * 31 + i * 7 + round) % 256);
  r.max_tokens = 6 + caller % 3 * 5;
  r.ignore_eos = true;
  if (caller % 2) { r.sampling.temperature = 1.0f; r.sampling.seed = static_cast<uint64_t>(caller); }
  return r;
}

constexpr int kCallers = 6, kRounds = 3;

std::vector<std::vector<int32_t>> QuietAnswers(const char* quantization, const char* device) {
  auto engine = MakeEngine(quantization, device, 1, {.max_batch = 1, .kv_cache_tokens = 512, .prefix_cache = engine::PrefixCache::kOff});
  std::vector<std::vector<int32_t>> answers;
  for (int caller = 0; caller < kCallers; ++caller)
    for (int round = 0; round < kRounds; ++round) answers.push_back(engine->Generate(RequestFor(caller, round))->tokens);
  return answers;
}

void RunBusy(const char* quantization, const char* device) {
  const auto want = QuietAnswers(quantization, device);
  auto engine = MakeEngine(quantization, device, 3, {.max_batch = 4, .kv_cache_tokens = 256, .prefill_chunk = 16, .block_tokens = 16});
  std::vector<std::vector<int32_t>> have(want.size());
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int caller = 0; caller < kCallers; ++caller)
    threads.emplace_back([&, caller] {
      for (int round = 0; round < kRounds; ++round) {
        std::atomic<int> seen{0};
        auto answer = engine->Generate(RequestFor(caller, round), [&](int32_t) { ++seen; return true; });
        if (answer) have[static_cast<size_t>(caller * kRounds + round)] = answer->tokens;
      }
    });
  std::thread watcher([&] { while (!done) { engine->Metrics(); std::this_thread::yield(); } });
  std::thread canceller([&] {
    for (int i = 0; !done; ++i) {
      engine::Request r = RequestFor(i % kCallers, 99);
      std::atomic<bool> finished{false};
      r.max_tokens = 40;
      r.on_event = [&](engine::Event&& e) { if (e.finish) finished = true; };
      auto id = engine->Submit(std::move(r));
      if (!id) continue;
      engine->Cancel(*id);
      while (!finished) std::this_thread::yield();
      if (i % 4 == 3) engine->FlushCache();
      if (i % 8 == 7) { engine->Pause(true); engine->Pause(false); }
    }
  });
  for (std::thread& t : threads) t.join();
  done = true;
  watcher.join();
  canceller.join();
  EXPECT_EQ(have, want) << quantization << " on " << device;
}

TEST(LoadGenerate, ManyCallersOnCpu) {
  for (const char* quantization : {"none", "w4a16", "w4a8", "nvfp4_online", "modelopt_fp4"}) RunBusy(quantization, "cpu");
}

TEST(LoadGenerate, ManyCallersOnReference) { RunBusy("w4a16", "reference"); }

// Two models load and answer at the same time, each with its own number of threads.
TEST(LoadGenerate, TwoModelsAtOnce) {
  const auto want = QuietAnswers("w4a16", "cpu");
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      auto engine = MakeEngine("w4a16", "cpu", 1 + i, {.max_batch = 2, .kv_cache_tokens = 256});
      for (int caller = 0; caller < kCallers; ++caller)
        for (int round = 0; round < kRounds; ++round) EXPECT_EQ(engine->Generate(RequestFor(caller, round))->tokens, want[static_cast<size_t>(caller * kRounds + round)]);
    });
  for (std::thread& t : threads) t.join();
}

// An engine that goes away with requests under way ends them.
TEST(LoadGenerate, DestructionEndsWhatRuns) {
  auto engine = MakeEngine("w4a16", "cpu", 2, {.max_batch = 2, .kv_cache_tokens = 1024});
  std::atomic<int> finished{0};
  for (int i = 0; i < 5; ++i) {
    engine::Request r = RequestFor(i, 0);
    r.max_tokens = 200;
    r.on_event = [&](engine::Event&& e) { if (e.finish) ++finished; };
    ASSERT_TRUE(engine->Submit(std::move(r)));
  }
  engine.reset();
  EXPECT_EQ(finished, 5);
}

}  // namespace
}  // namespace halfbyte
