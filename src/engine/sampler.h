// Sampler: one row of logits -> one token.
//
// Order: logprobs are read from the logits as the model gave them; then forbidden tokens and the allowed set (min_tokens, structured output), logit_bias,
// penalties (repetition, frequency, presence); greedy ends here with the argmax, ties to the lowest id; else temperature, min_p, top_k, top_p and a
// draw. This is vLLM's order; Hugging Face applies min_p last, which differs only where top_p and min_p are both given.
// -inf times a repetition penalty stays -inf, so a forbidden token never comes back.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/logits_scan.h"
#include "engine/sampling_params.h"
#include "engine/token_history.h"
#include "engine/truncated_distribution.h"

namespace halfbyte::engine {

struct SampleInput {
  std::span<const float> logits;       // F32 [V]
  const SamplingParams* params = nullptr;
  const TokenHistory* history = nullptr;  // may be null where the params have no penalties
  std::span<const int32_t> forbidden;     // ids that may not come now (end tokens before min_tokens)
  std::span<const uint64_t> allowed;      // bit t % 64 of word t / 64: token t may come; empty: every token
  uint64_t index = 0;                     // tokens generated before this one
};

struct Sampled {
  int32_t token = 0;
  std::optional<PositionLogprobs> logprobs;  // where params->logprobs >= 0
};

// Holds scratch memory of the vocabulary's size; one thread at a time uses one.
class Sampler {
 public:
  // kInternal where the row has NaN or +inf; kInvalidArgument where the request's own restrictions leave nothing to choose from. The params have
  // passed Validate.
  base::Result<Sampled> Sample(const SampleInput& input);

 private:
  std::span<const float> Adjust(const SampleInput& input);

  std::vector<float> adjusted_;
  TruncatedDistribution distribution_;
};

}  // namespace halfbyte::engine
