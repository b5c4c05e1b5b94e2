// The whole engine over the demo model: a request's tokens and logprobs are the same, to the last bit, alone and in company, for any chunking, block size,
// preemption and prefix cache.
#include <gtest/gtest.h>

#include <future>

#include "engine/engine.h"
#include "model/load.h"

namespace halfbyte::engine {
namespace {

std::unique_ptr<Engine> DemoEngine(const char* quantization, const char* device, model::Arithmetic arithmetic, const EngineOptions& options) {
  model::LoadSettings settings;
  settings.quantization = quantization;
  settings.device = device;
  settings.arithmetic = arithmetic;
  auto loaded = model::LoadModel(HALFBYTE_SOURCE_DIR "/models/demo", settings);
  EXPECT_TRUE(loaded) << loaded.error().ToString();
  auto engine = Engine::Create(std::move(loaded->model), options);
  EXPECT_TRUE(engine) << engine.error().ToString();
  return std::move(*engine);
}

std::vector<Request> Requests(int n) {
  std::vector<Request> requests;
  uint32_t random = 12345;
  const auto next = [&] { return (random = random * 1664525 + 1013904223) >> 8; };
  for (int i = 0; i < n; ++i) {
    Request r;
    // Every other prompt begins like the one before it, for the prefix cache.
    if (i % 2) r.prompt.assign(requests.back().prompt.begin(), requests.back().prompt.begin() + static_cast<int64_t>(requests.back().prompt.size() * 3 / 4));
    for (int64_t k = 0, more = 20 + i * 17 % 90; k < more; ++k) r.prompt.push_back(static_cast<int32_t>(3 + next() % 4000));
    r.max_tokens = 10 + i % 4 * 25;
    r.ignore_eos = true;
    r.sampling.temperature = i % 3 ? 1.0f : 0.0f;
    r.sampling.seed = static_cast<uint64_t>(i);
    r.sampling.logprobs = 2;
    if (i % 4 == 2) r.prompt_logprobs = 1;
    requests.push_back(std::move(r));
  }
  return requests;
}

std::vector<Generation> RunAll(Engine& engine, const std::vector<Request>& requests) {
  std::vector<std::future<Generation>> running;
  for (const Request& r : requests) running.push_back(std::async(std::launch::async, [&engine, r] { return *engine.Generate(r); }));
  std::vector<Generation> results;
  for (auto& f : running) results.push_back(f.get());
  return results;
}

void ExpectSame(const Generation& a, const Generation& b, size_t i) {
  EXPECT_EQ(a.tokens, b.tokens) << "request " << i;
  ASSERT_EQ(a.logprobs.size(), b.logprobs.size());
  for (size_t t = 0; t < a.logprobs.size(); ++t) {
    ASSERT_EQ(a.logprobs[t].logprob, b.logprobs[t].logprob) << "request " << i << " token " << t;
    ASSERT_EQ(a.logprobs[t].top, b.logprobs[t].top);
  }
  ASSERT_EQ(a.prompt_logprobs.size(), b.prompt_logprobs.size());
  for (size_t t = 0; t < a.prompt_logprobs.size(); ++t) ASSERT_EQ(a.prompt_logprobs[t].logprob, b.prompt_logprobs[t].logprob) << "request " << i << " position " << t + 1;
}

void CheckCompany(const char* quantization, const char* device, model::Arithmetic arithmetic, int n) {
  const std::vector<Request> requests = Requests(n);
  std::vector<Generation> alone;
  {
    auto engine = DemoEngine(quantization, device, arithmetic, {.max_batch = 1, .kv_cache_tokens = 2048, .block_tokens = 16, .prefix_cache = PrefixCache::kOff});
    for (const Request& r : requests) alone.push_back(*engine->Generate(r));
  }
  // Small chunks, other blocks, and a cache that holds about two of the requests.
  auto engine = DemoEngine(quantization, device, arithmetic, {.max_batch = 6, .kv_cache_tokens = 320, .prefill_chunk = 37, .block_tokens = 32});
  const std::vector<Generation> together = RunAll(*engine, requests);
  engine->BetweenSteps([] {});  // the numbers are those of the last step, which may still be under way when its events are out
  EXPECT_EQ(engine->Metrics().kv_blocks_owned, 0);
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(together[i].finish.reason, FinishReason::kLength);
    ExpectSame(alone[i], together[i], i);
  }
  // Once more over a warm cache.
  const std::vector<Generation> again = RunAll(*engine, requests);
  for (size_t i = 0; i < requests.size(); ++i) ExpectSame(alone[i], again[i], i);
  const SchedulerCounters counters = engine->Metrics().scheduler;
  std::printf("%s %s: %ld preemptions, %ld cached tokens\n", device, quantization, static_cast<long>(counters.preemptions), static_cast<long>(counters.cached_tokens));
  EXPECT_GT(counters.preemptions, 0);
  EXPECT_GT(counters.cached_tokens, 0);
}

TEST(RealModel, AloneAndInCompanyAreBitwiseTheSameOnCpu) {
  for (const char* quantization : {"none", "w4a16", "w4a8", "nvfp4_online", "modelopt_fp4"}) CheckCompany(quantization, "cpu", model::Arithmetic::kRounded, 12);
  CheckCompany("w4a16", "cpu", model::Arithmetic::kExact, 12);
}

TEST(RealModel, AloneAndInCompanyAreBitwiseTheSameOnReference) { CheckCompany("w4a16", "reference", model::Arithmetic::kExact, 4); }

}  // namespace
}  // namespace halfbyte::engine
