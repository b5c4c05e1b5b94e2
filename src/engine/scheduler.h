// Scheduler: which sequences get rows in the next step. Pure logic: no thread, no clock of its own, no model.
//
// A step holds one row of every sequence that decodes, and up to prefill_rows rows of sequences that have more than one position to catch up
// with: prompts, and after a preemption the answer so far. Decode rows come first, so a long prompt never stops a running answer; it slows it by one
// chunk.
//
// Fairness. Memory is handed out strictly in order of arrival: nobody overtakes a large request that waits for blocks. Of the prefill rows
// the oldest sequence gets half at least; sequences with less left to do than it share the other half, the shortest first, and what they leave is the oldest's. So
// a short prompt is not stuck behind a long one, the long one cannot starve, and equal prompts are served one after the other (with equal shares all of them
// would finish last).
//
// Preemption. When a sequence needs a block and none is left, the youngest sequence behind it loses its memory and waits again at its place in the
// order of arrival; later it computes its prompt rows as prompt rows and its answer as generated rows, so its tokens are the same. A sequence is only
// ever preempted for an older one and every request fits the pool alone, so the oldest always finishes: no deadlock.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/sequence.h"

namespace halfbyte::engine {

struct SchedulerOptions {
  int64_t max_batch = 32;      // sequences that own memory at once
  int64_t prefill_rows = 512;  // rows of a step beyond the decode rows
  int64_t logit_rows = 4096;   // rows of a step whose logits may be wanted (memory: 4 * V bytes each); at least max_batch is always allowed
  int64_t max_length = 0;      // prompt and answer together; 0: as the model and the pool allow
  int64_t max_queue = 1024;    // requests that may wait
};

// One sequence's rows in a step: positions [begin, end), all of one class.
struct Work {
  Sequence* sequence = nullptr;
  int64_t begin = 0, end = 0;
  bool prompt = false;      // class of the rows
  bool all_logits = false;  // prompt_logprobs: the logits of every row are wanted
  bool last = false;        // the rows reach the sequence's last token
  bool samples() const { return last && sequence->max_generated > 0; }
  bool wants_last() const { return samples() || all_logits; }
};

struct SchedulerCounters {
  int64_t preemptions = 0;
  int64_t prompt_rows = 0, generated_rows = 0;  // planned
  int64_t cached_tokens = 0;                    // prompt tokens found in the prefix cache
  int64_t finished[4] = {};                     // by FinishReason
};

class Scheduler {
 public:
  // `states` is borrowed.
  Scheduler(const SchedulerOptions& options, const ModelTraits& traits, SequenceStates& states);

  // Takes a request into the queue. kInvalidArgument: it can never be served (says why); kUnavailable: the queue is full. On failure on_event is not called.
  base::Status Add(RequestId id, Request request);
  // The same checks without taking it; thread-safe, since it reads only what never changes.
  base::Status Check(const Request& request) const;

  // Ends a request with kAbort; its memory is free when this returns. false: no such request (it may have ended).
  bool Cancel(RequestId id, std::optional<base::Error> why = std::nullopt);
  // Ends every request.
  void CancelAll(const base::Error& why);
  // Ends the requests whose deadline has passed.
  void Expire(Clock::time_point now);

  // The rows of the next step, prompt rows first; memory for them is reserved. Empty: nothing to do.
  const std::vector<Work>& Plan(Clock::time_point now);

  // After a step, for each Work of the plan in order: Advance, then where it samples Append, or Fail. A sequence that has ended is gone after it.
  void Advance(const Work& work);
  // The next token of a sequence; ends it where the token or its length says so.
  void Append(Sequence& sequence, int32_t token, std::optional<PositionLogprobs> logprobs, Clock::time_point now);
  void Fail(Sequence& sequence, base::Error error, Clock::time_point now);
  // Ends a sequence that wanted no tokens, after its prompt.
  void EndWithoutTokens(Sequence& sequence, Clock::time_point now);

  // A row of logits was broken, so that K and V behind it may be: blocks that anybody has written so far are not shared any more.
  void DistrustCache() { states_.Forget(); }
  // New weights: all running sequences lose their state and wait; the prefix cache is empty.
  void ForgetStates();
  // While held, requests that have not started do not start; those that have go on, also after a preemption.
  void Hold(bool held) { held_ = held; }
  // No request has started: none has tokens of the present weights.
  bool quiet() const;

  bool idle() const { return sequences_.empty(); }
  int64_t waiting() const { return static_cast<int64_t>(waiting_.size()); }
  int64_t running() const { return static_cast<int64_t>(running_.size()); }
  int64_t max_length() const { return max_length_; }
  const SchedulerCounters& counters() const { return counters_; }

 private:
  using ByArrival = std::map<uint64_t, Sequence*>;

  void PlanDecode();
  void PlanPrefill();
  void PlanRows(Sequence& sequence, int64_t rows);
  void Admit();
  bool Fits(const Sequence& sequence) const;
  bool MakeRoom(Sequence& sequence, int64_t tokens);
  void Preempt(Sequence& sequence);
  int64_t Held(int64_t tokens) const;
  void End(Sequence& sequence, Event event, FinishReason reason, bool end_token, std::optional<base::Error> error);

  SchedulerOptions options_;
  ModelTraits traits_;
  SequenceStates& states_;
  int64_t max_length_ = 0;
  uint64_t next_arrival_ = 0;
  bool held_ = false;
  std::unordered_map<RequestId, std::unique_ptr<Sequence>> sequences_;
  ByArrival waiting_, running_;
  std::vector<Work> plan_;
  int64_t prefill_left_ = 0, logits_left_ = 0;  // of the step being planned
  SchedulerCounters counters_;
};

}  // namespace halfbyte::engine
