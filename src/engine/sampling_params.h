// SamplingParams: how one request's tokens are chosen. The defaults are greedy and without any change to the logits.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/result.h"

namespace halfbyte::engine {

struct SamplingParams {
  // Below kGreedyTemperature the token is the argmax (ties to the lowest id) and top_k, top_p, min_p and seed have no effect.
  float temperature = 0.0f;
  int64_t top_k = 0;    // keep the k likeliest tokens; 0 or -1: all
  float top_p = 1.0f;   // keep the likeliest tokens until their share reaches top_p; (0, 1]
  float min_p = 0.0f;   // keep tokens at least min_p times as likely as the likeliest; [0, 1]

  float repetition_penalty = 1.0f;  // tokens seen in the prompt or the answer: positive logits are divided by it, others multiplied
  float presence_penalty = 0.0f;    // subtracted from the logit of every token that the answer holds already
  float frequency_penalty = 0.0f;   // subtracted once for each time the answer holds the token
  std::vector<std::pair<int32_t, float>> logit_bias;  // added to the logit of a token id

  // Randomness is a function of (seed, stream, index of the token in the answer) alone: not of the batch, other requests or threads.
  uint64_t seed = 0;
  uint64_t stream = 0;  // tells apart the n choices of one request

  int32_t logprobs = -1;  // -1: none; n >= 0: the chosen token's and those of the n likeliest, before everything above
};

inline constexpr float kGreedyTemperature = 1e-5f;  // as in vLLM; dividing by less would overflow
inline constexpr int64_t kMaxLogitBias = 1024;      // OpenAI's clients send at most 300
inline bool IsGreedy(const SamplingParams& p) { return p.temperature < kGreedyTemperature; }
inline bool HasPenalties(const SamplingParams& p) {
  return p.repetition_penalty != 1.0f || p.presence_penalty != 0.0f || p.frequency_penalty != 0.0f;
}

// kInvalidArgument with the field's name for values out of range (NaN included) or token ids that the vocabulary does not have.
base::Status Validate(const SamplingParams& params, int64_t vocab);

}  // namespace halfbyte::engine
