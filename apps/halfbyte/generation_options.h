// Flags of the commands that generate: sampling and lengths.
#pragma once

#include <string>
#include <vector>

#include "commands.h"
#include "engine/engine.h"
#include "model_options.h"

namespace halfbyte::app {

struct GenerationOptions {
  int64_t max_tokens = 256;
  double temperature = 0, top_p = 1, min_p = 0;
  int64_t top_k = 0, seed = 0;
  std::vector<std::string> stop;

  void AddTo(CLI::App& command);
  engine::SamplingParams Sampling() const;
};

// A command's sequences: how many at once, and the longest of them. Known before loading but for the model's context, which cuts answers short.
struct SequenceNeeds {
  int64_t sequences = 1, prompt_tokens = 0, max_tokens = 0;
  std::string kv_cache_dtype;

  engine::EngineOptions Engine(const model::ModelSpec& spec) const;
  // For an Admit (model_options.h): the prompt fits the model and the cache fits the memory; `remedy` as for CheckCache.
  base::Status Check(const model::Admission& admission, const std::string& remedy) const;
};

// Greedy answers to many prompts, as many at once as the engine takes. done(i, tokens, last token is an end token) comes on the engine's thread.
base::Status GenerateAll(engine::Engine& engine, const std::vector<std::vector<int32_t>>& prompts, int64_t max_tokens,
                         const std::function<void(size_t, const std::vector<int32_t>&, bool)>& done);

}  // namespace halfbyte::app
