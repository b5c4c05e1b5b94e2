// Passes over one row of logits, F32 [V]; written so that the compiler vectorizes them (V is up to 256k and each runs for every token).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace halfbyte::engine {

// The largest logit and its lowest id. An error where a logit is NaN or +inf, or where all are -inf: such a row says that the computation broke.
// A single -inf is legitimate (a token that cannot come).
struct Peak {
  float value = 0;
  int32_t id = 0;
};
base::Result<Peak> FindPeak(std::span<const float> logits);

// out[i] = exp((logits[i] - max) * inverse_temperature), for max >= every logit. Within a relative 3e-7 of the exponential of the rounded argument;
// below e^-87 the result is 0.
void ExpWeights(std::span<const float> logits, float max, float inverse_temperature, float* out);

// out[i] = min(255, floor((max - logits[i]) * scale)), for max >= every logit and scale > 0.
void Buckets(std::span<const float> logits, float max, float scale, uint8_t* out);

// ln of the sum of exp(logits), in FP64.
double LogSumExp(std::span<const float> logits, float max);

struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0;
  friend bool operator==(const TokenLogprob&, const TokenLogprob&) = default;
};

// What a response reports about one position.
struct PositionLogprobs {
  float logprob = 0;                // of the token that stands there
  int64_t rank = 1;                 // 1 + the number of tokens with a larger logit
  std::vector<TokenLogprob> top;    // the n likeliest, best first, ties by the lowest id
};

// logprobs of `token` and of the n likeliest tokens: logits - LogSumExp(logits). Fails as FindPeak does.
base::Result<PositionLogprobs> ComputeLogprobs(std::span<const float> logits, int32_t token, int32_t n);

}  // namespace halfbyte::engine
