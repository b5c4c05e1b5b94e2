// Sequence: a request inside the engine, from admission to its last event.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/request.h"
#include "engine/sequence_state.h"
#include "engine/token_history.h"

namespace halfbyte::engine {

struct Sequence {
  RequestId id = 0;
  Request request;
  uint64_t arrival = 0;             // order of submission; a lower number is served first and preempted last
  std::vector<int32_t> tokens;      // prompt, then the answer so far
  int64_t max_generated = 0;        // max_tokens and the model's length together
  std::vector<int32_t> end_tokens;  // stop ids and, unless ignored, the model's end tokens
  TokenHistory history;             // filled where the request has penalties
  SequenceState state;
  bool running = false;             // admitted: owns memory; else it waits
  bool admitted_before = false;
  int64_t cached_tokens = 0;
  int64_t reported_rows = 0;         // prompt rows whose logprobs were given out; survives preemption

  int64_t prompt_tokens() const { return static_cast<int64_t>(request.prompt.size()); }
  int64_t generated() const { return static_cast<int64_t>(tokens.size()) - prompt_tokens(); }
  // Positions that have no state yet. 1 and no prompt row among them: plain decoding.
  int64_t pending() const { return static_cast<int64_t>(tokens.size()) - state.tokens; }
  bool decoding() const { return state.tokens >= prompt_tokens() && pending() == 1; }
  Usage usage() const { return {prompt_tokens(), generated(), cached_tokens}; }
};

}  // namespace halfbyte::engine
