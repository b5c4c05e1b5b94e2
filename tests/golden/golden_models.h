// Models whose right results are stored beside them (computed by transformers and numpy), and running them in this process.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/model_runner.h"
#include "engine/score.h"
#include "model/load.h"

namespace halfbyte::golden {

// Names of the reference models. Those that are not in the repository (tests/data/models) are found only where the reference data
// stands beside the checkout; elsewhere their tests are skipped.
std::vector<std::string> AllModels();
std::vector<std::string> Bf16Models();
std::vector<std::string> MoeModels();  // of Bf16Models, those with expected_nvfp4.safetensors
std::vector<std::string> Fp8Models();
std::optional<std::filesystem::path> FindModel(const std::string& name);

// How a model is loaded and computed.
struct Form {
  const char* device;
  const char* quantization;
  model::Arithmetic arithmetic;
  std::string ToString() const;
};

model::LoadedModel Load(const std::filesystem::path& folder, const Form& form);

// The logits of every position of `documents`, some rows at a time, each document's in order.
void VisitLogits(const std::filesystem::path& folder, const Form& form, const std::vector<std::vector<int32_t>>& documents,
                 const std::function<void(const engine::ScoredRows&)>& visit);
// The same all at once: one vector [T * V] a document.
std::vector<std::vector<float>> Logits(const std::filesystem::path& folder, const Form& form, const std::vector<std::vector<int32_t>>& documents);
// Greedy answer to `prompt` through the engine: KV cache, generated rows, scheduler. end_tokens: whether the model's end tokens end it.
std::vector<std::vector<int32_t>> Greedy(const std::filesystem::path& folder, const Form& form, const std::vector<std::vector<int32_t>>& prompts, int64_t max_tokens, bool end_tokens);

double MaxError(const std::vector<float>& have, const std::vector<float>& want);
// sqrt(mean((have - want)^2)) / sqrt(mean(want^2))
double RelativeRms(const std::vector<float>& have, const std::vector<float>& want);

}  // namespace halfbyte::golden

// Finds a model's folder or skips the test with the reason.
#define HB_FOLDER_OR_SKIP(folder, name)                                                                                                  \
  const auto found_##folder = ::halfbyte::golden::FindModel(name);                                                                       \
  if (!found_##folder) GTEST_SKIP() << "the reference model " << name << " is not beside the checkout (../shared/reference/models)";     \
  const std::filesystem::path folder = *found_##folder
