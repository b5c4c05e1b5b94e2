// What a request's penalties need to know of the tokens so far.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>

#include "engine/sampling_params.h"

namespace halfbyte::engine {

class TokenHistory {
 public:
  void AddPrompt(std::span<const int32_t> tokens) { for (int32_t t : tokens) counts_[t]; }
  void AddGenerated(int32_t token) { ++counts_[token]; }

  // Changes the logits of the tokens seen, as vLLM and Hugging Face do: the repetition penalty first, over prompt and answer,
  // then frequency and presence over the answer.
  void Penalize(const SamplingParams& p, std::span<float> logits) const {
    for (const auto& [token, generated] : counts_) {
      float& l = logits[static_cast<size_t>(token)];
      l = l > 0 ? l / p.repetition_penalty : l * p.repetition_penalty;
      if (generated > 0) l -= p.frequency_penalty * static_cast<float>(generated) + p.presence_penalty;
    }
  }

 private:
  std::unordered_map<int32_t, int32_t> counts_;  // every token seen -> how often the answer holds it
};

}  // namespace halfbyte::engine
