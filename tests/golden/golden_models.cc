#include "golden/golden_models.h"

#include <gtest/gtest.h>

#include <cmath>
#include <future>

#include "base/check.h"
#include "engine/engine.h"

namespace halfbyte::golden {

namespace fs = std::filesystem;

std::vector<std::string> AllModels() {
  std::vector<std::string> names = Bf16Models();
  for (const std::string& name : Fp8Models()) names.push_back(name);
  return names;
}
std::vector<std::string> Bf16Models() { return {"qwen3_moe", "qwen2_moe", "mixtral", "olmoe", "qwen3", "llama"}; }
std::vector<std::string> MoeModels() { return {"qwen3_moe", "qwen2_moe", "mixtral", "olmoe"}; }
std::vector<std::string> Fp8Models() {
  return {"qwen3_moe-fp8-block", "qwen3_moe-fp8-tensor", "qwen3_moe-fp8-channel", "mixtral-fp8-block", "mixtral-fp8-tensor", "mixtral-fp8-channel"};
}

std::optional<fs::path> FindModel(const std::string& name) {
  for (const fs::path& root : {fs::path(HALFBYTE_SOURCE_DIR "/../shared/reference/models"), fs::path(HALFBYTE_TEST_DATA "/models")})
    if (fs::exists(root / name / "config.json")) return root / name;
  return std::nullopt;
}

std::string Form::ToString() const { return base::StrCat(quantization, " on ", device, arithmetic == model::Arithmetic::kExact ? " --exact" : " --rounded"); }

model::LoadedModel Load(const fs::path& folder, const Form& form) {
  model::LoadSettings settings;
  settings.device = form.device;
  settings.quantization = form.quantization;
  settings.arithmetic = form.arithmetic;
  auto loaded = model::LoadModel(folder, settings);
  HB_CHECK(loaded.has_value(), folder.string(), ": ", loaded.error().ToString());
  return std::move(*loaded);
}

void VisitLogits(const fs::path& folder, const Form& form, const std::vector<std::vector<int32_t>>& documents, const std::function<void(const engine::ScoredRows&)>& visit) {
  engine::StateOptions options{.sequences = 64, .cache_tokens = 8192};
  auto runner = engine::ModelRunner::Create(Load(folder, form).model, options);
  HB_CHECK(runner.has_value(), runner.error().ToString());
  engine::Scorer scorer(**runner, documents);
  for (;;) {
    const auto pieces = scorer.Next();
    HB_CHECK(pieces.has_value(), pieces.error().ToString());
    if (pieces->empty()) return;
    for (const engine::ScoredRows& p : *pieces) visit(p);
  }
}

std::vector<std::vector<float>> Logits(const fs::path& folder, const Form& form, const std::vector<std::vector<int32_t>>& documents) {
  std::vector<std::vector<float>> out(documents.size());
  VisitLogits(folder, form, documents, [&](const engine::ScoredRows& p) {
    const float* rows = static_cast<const float*>(p.logits.data);
    out[p.document].insert(out[p.document].end(), rows, rows + p.logits.rows * p.logits.cols);
  });
  return out;
}

std::vector<std::vector<int32_t>> Greedy(const fs::path& folder, const Form& form, const std::vector<std::vector<int32_t>>& prompts, int64_t max_tokens, bool end_tokens) {
  auto engine = engine::Engine::Create(Load(folder, form).model, {.max_batch = 16, .kv_cache_tokens = 8192});
  HB_CHECK(engine.has_value(), engine.error().ToString());
  std::vector<std::future<std::vector<int32_t>>> running;
  for (const auto& prompt : prompts)
    running.push_back(std::async(std::launch::async, [&, prompt] {
      engine::Request request;
      request.prompt = prompt;
      request.max_tokens = max_tokens;
      request.ignore_eos = !end_tokens;
      auto answer = (*engine)->Generate(std::move(request));
      HB_CHECK(answer.has_value(), answer.error().ToString());
      return answer->tokens;
    }));
  std::vector<std::vector<int32_t>> out;
  for (auto& r : running) out.push_back(r.get());
  return out;
}

double MaxError(const std::vector<float>& have, const std::vector<float>& want) {
  HB_CHECK(have.size() == want.size());
  double most = 0;
  for (size_t i = 0; i < have.size(); ++i) {
    const double e = std::fabs(static_cast<double>(have[i]) - want[i]);
    if (!(e <= most)) most = e;  // NaN sticks
  }
  return most;
}

double RelativeRms(const std::vector<float>& have, const std::vector<float>& want) {
  HB_CHECK(have.size() == want.size());
  double error = 0, size = 0;
  for (size_t i = 0; i < have.size(); ++i) {
    const double e = static_cast<double>(have[i]) - want[i];
    error += e * e;
    size += static_cast<double>(want[i]) * want[i];
  }
  return std::sqrt(error / size);
}

}  // namespace halfbyte::golden
