// Request: what a caller asks of the engine, and the events it gets back.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/logits_scan.h"
#include "engine/sampling_params.h"

namespace halfbyte::engine {

using Clock = std::chrono::steady_clock;
using RequestId = uint64_t;

enum class FinishReason : uint8_t {
  kStop,    // an end token or stop id came
  kLength,  // max_tokens, or the model's length
  kAbort,   // cancelled, out of time, or the engine is shutting down
  kError,   // the step failed or the logits were no numbers
};
// "stop", "length", "abort", "error"
std::string_view FinishReasonName(FinishReason reason);

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;  // the end token included
  int64_t cached_tokens = 0;      // of the prompt, found in the prefix cache at the first admission
};

struct Finish {
  FinishReason reason = FinishReason::kStop;
  bool end_token = false;            // the last token is an end token or stop id: not part of the text
  Usage usage;
  std::optional<base::Error> error;  // kError; kAbort: why, where it was not the caller's own Cancel
};

// One step's news about one request: a token, the end, or both.
struct Event {
  RequestId request = 0;
  std::optional<int32_t> token;
  std::optional<PositionLogprobs> logprobs;  // of `token`
  // Of prompt positions, in order over all events of the request; the first position has none, so entry 0 belongs to position 1.
  std::vector<PositionLogprobs> prompt_logprobs;
  std::optional<Finish> finish;              // in the last event of every request, and only there
  Clock::time_point time;
};

// What structured output knows about the next token. One call at a time for one request: Allowed on any thread of the pool (rows are sampled side by
// side), Accept on the engine's.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;
  // Bit t % 64 of word t / 64: token t may come now. Valid until Accept. Empty: every token.
  virtual std::span<const uint64_t> Allowed() = 0;
  virtual void Accept(int32_t token) = 0;
};

struct Request {
  std::vector<int32_t> prompt;     // at least one token
  SamplingParams sampling;
  // Unset: as many as the model's length allows. 0: the prompt is run (for prompt_logprobs), nothing is generated.
  std::optional<int64_t> max_tokens;
  int64_t min_tokens = 0;          // end tokens and stop ids cannot come before
  std::vector<int32_t> stop_ids;   // end the answer, besides the model's own end tokens
  bool ignore_eos = false;         // the model's end tokens are tokens like others; stop_ids still stop
  int32_t prompt_logprobs = -1;    // n >= 0: logprobs of the prompt's tokens and of the n likeliest at each position
  std::optional<Clock::time_point> deadline;
  std::shared_ptr<TokenConstraint> constraint;
  // Called on the engine's thread; must not block. Calling Engine::Cancel from it is fine.
  std::function<void(Event&&)> on_event;
};

}  // namespace halfbyte::engine
