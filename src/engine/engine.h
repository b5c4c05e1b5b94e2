// Engine: the facade that generate, chat, eval, bench and serve use. One thread of its own runs the model; every method here may be called
// from any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/executor.h"
#include "engine/request.h"
#include "engine/scheduler.h"

namespace halfbyte::engine {

struct EngineOptions {
  int64_t max_batch = 32;        // sequences computed at once
  int64_t kv_cache_tokens = 0;   // of all sequences together; 0: max_batch * max_model_len, at most half of the free memory
  int64_t prefill_chunk = 512;   // prompt rows of a step
  int64_t block_tokens = 32;     // tokens of a cache block; a multiple of 16
  int64_t max_model_len = 0;     // prompt and answer together; 0: the model's
  PrefixCache prefix_cache = PrefixCache::kOn;
  int64_t max_queue = 1024;      // requests that wait; further ones are refused with kUnavailable
  std::optional<tensor::DType> kv_dtype;  // BF16 or F8_E4M3; unset: BF16; ignored by the exact arithmetic, which keeps F32
};

struct EngineMetrics {
  int64_t running = 0, waiting = 0;
  int64_t kv_blocks = 0, kv_blocks_owned = 0, kv_blocks_cached = 0, block_tokens = 0;
  SchedulerCounters scheduler;
  ExecutorCounters executor;
};

// A whole answer, for callers that wait.
struct Generation {
  std::vector<int32_t> tokens;  // the end token included
  std::vector<PositionLogprobs> logprobs;         // one a token, where asked for
  std::vector<PositionLogprobs> prompt_logprobs;  // one a prompt token but the first, where asked for
  Finish finish;
  double first_token_seconds = 0;  // from submission
  double total_seconds = 0;
  std::string_view finish_reason() const { return FinishReasonName(finish.reason); }
};

class Engine {
 public:
  static base::Result<std::unique_ptr<Engine>> Create(std::unique_ptr<model::Model> model, const EngineOptions& options);
  // Over any runner; for tests.
  static std::unique_ptr<Engine> Create(std::unique_ptr<StepRunner> runner, const EngineOptions& options);
  // Ends all requests with kAbort and joins the thread.
  ~Engine();

  const ModelTraits& traits() const;
  int64_t max_length() const;  // of prompt and answer together

  // kInvalidArgument: the request can never be served. kUnavailable: the queue is full, or the engine is stopping. Otherwise on_event will be
  // called, its last call with `finish`.
  base::Result<RequestId> Submit(Request request);
  // Takes effect before the next step: its blocks are free then, and it ends with kAbort. Nothing happens where it has ended already.
  void Cancel(RequestId id);

  // Submits and waits. `on_token` (may be empty) is called on the engine's thread for each token; false ends the answer with kStop.
  // An error is one of the request itself; what happened to a running one is in finish.
  base::Result<Generation> Generate(Request request, const std::function<bool(int32_t token)>& on_token = {});

  // Runs `work` between two steps on the engine's thread and waits for it: nothing else uses the model meanwhile.
  void BetweenSteps(const std::function<void()>& work);
  // The same for work that changes the weights: first the requests that have started finish while the others wait for the new weights (kFinish), or
  // all requests present are aborted (kAbort). The prefix cache is empty then. false: the engine is stopping and `work` did not run.
  enum class Started : uint8_t { kFinish, kAbort };
  bool ChangeWeights(const std::function<void()>& work, Started started);
  // Empties the prefix cache; running requests go on.
  void FlushCache();

  // While paused no request starts; started ones go on.
  void Pause(bool paused);
  // Ends every request with kAbort and this error.
  void AbortAll(const base::Error& why);

  EngineMetrics Metrics() const;

 private:
  struct Shared;
  Engine();
  std::unique_ptr<Shared> shared_;
};

}  // namespace halfbyte::engine
