// Executor: one step after another: plan, run, sample, tell. Everything here happens on the thread that calls it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/sampler.h"
#include "engine/scheduler.h"
#include "engine/step_runner.h"

namespace halfbyte::engine {

struct ExecutorCounters {
  int64_t steps = 0;
  int64_t failed_steps = 0;
  int64_t broken_rows = 0;     // requests that ended because logits were no numbers
  int64_t sampled_tokens = 0;
  double run_seconds = 0, sample_seconds = 0;
};

class Executor {
 public:
  // Both are borrowed.
  Executor(StepRunner& runner, Scheduler& scheduler) : runner_(runner), scheduler_(scheduler) {}

  // Plans the next step. false: there is nothing to do.
  bool Prepare();
  // Runs the planned step and tells the requests. A step that fails ends the requests that had rows in it with kError; the others go on.
  void Execute();
  bool Step() { return Prepare() && (Execute(), true); }

  const ExecutorCounters& counters() const { return counters_; }

 private:
  // What a row of logits is for.
  struct Reading {
    size_t work = 0;
    int64_t position = 0;  // of the row in its sequence
    bool sample = false;   // the next token, else the logprobs of the prompt token that follows
    base::Result<Sampled> sampled;
    base::Result<PositionLogprobs> prompt;
  };

  void Assemble();
  void ReadRow(const Work& work, std::span<const float> logits, Reading& reading) const;
  void Deliver();

  StepRunner& runner_;
  Scheduler& scheduler_;
  ExecutorCounters counters_;
  std::span<const Work> plan_;
  std::vector<int32_t> tokens_;
  std::vector<kernels::SequenceRows> sequences_;
  std::vector<int64_t> logit_rows_;
  std::vector<Reading> readings_;
  int64_t prompt_rows_ = 0;
};

}  // namespace halfbyte::engine
