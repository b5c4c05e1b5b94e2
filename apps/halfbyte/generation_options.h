// Flags of the commands that generate: sampling and lengths.
#pragma once

#include <string>
#include <vector>

#include "commands.h"
#include "engine/engine.h"

namespace halfbyte::app {

struct GenerationOptions {
  int64_t max_tokens = 256;
  double temperature = 0, top_p = 1, min_p = 0;
  int64_t top_k = 0;
  uint64_t seed = 0;
  std::vector<std::string> stop;

  void AddTo(CLI::App& command);
  engine::SamplingParams Sampling() const;
};

// EngineOptions of a command that runs one sequence of at most `tokens` tokens at a time.
base::Result<engine::EngineOptions> SingleSequence(const std::string& kv_cache_dtype, int64_t tokens);

// Greedy answers to many prompts, as many at once as the engine takes. done(i, tokens, last token is an end token) comes on the engine's thread.
base::Status GenerateAll(engine::Engine& engine, const std::vector<std::vector<int32_t>>& prompts, int64_t max_tokens,
                         const std::function<void(size_t, const std::vector<int32_t>&, bool)>& done);

}  // namespace halfbyte::app
