#include "generation_options.h"

#include "eval_documents.h"

#include <condition_variable>
#include <mutex>

namespace halfbyte::app {

void GenerationOptions::AddTo(CLI::App& c) {
  c.add_option("--max-tokens", max_tokens, "tokens to generate at most")->check(CLI::Range(int64_t{0}, int64_t{1} << 30))->capture_default_str();
  c.add_option("--temperature", temperature, "0: greedy")->check(CLI::Range(0.0, 100.0))->capture_default_str();
  c.add_option("--top-p", top_p)->check(CLI::Range(0.0, 1.0))->capture_default_str();
  c.add_option("--top-k", top_k, "0: all")->check(CLI::Range(int64_t{0}, int64_t{1} << 30))->capture_default_str();
  c.add_option("--min-p", min_p)->check(CLI::Range(0.0, 1.0))->capture_default_str();
  c.add_option("--seed", seed)->capture_default_str();
  c.add_option("--stop", stop, "end the answer before this text (may be repeated)");
}

engine::SamplingParams GenerationOptions::Sampling() const {
  engine::SamplingParams p;
  p.temperature = static_cast<float>(temperature);
  p.top_p = static_cast<float>(top_p);
  p.min_p = static_cast<float>(min_p);
  p.top_k = top_k;
  p.seed = seed;
  return p;
}

base::Result<engine::EngineOptions> SingleSequence(const std::string& kv_cache_dtype, int64_t tokens) {
  engine::EngineOptions o;
  o.max_batch = 1;
  o.kv_cache_tokens = tokens + o.block_tokens;
  o.prefix_cache = engine::PrefixCache::kOff;
  o.kv_dtype = KvDtype(kv_cache_dtype);
  return o;
}

base::Status GenerateAll(engine::Engine& engine, const std::vector<std::vector<int32_t>>& prompts, int64_t max_tokens,
                         const std::function<void(size_t, const std::vector<int32_t>&, bool)>& done) {
  std::mutex mutex;
  std::condition_variable changed;
  size_t left = 0;
  std::optional<base::Error> error;
  std::vector<std::vector<int32_t>> answers(prompts.size());
  base::Status submitted;
  for (size_t i = 0; i < prompts.size() && submitted; ++i) {
    engine::Request request;
    request.prompt = prompts[i];
    request.max_tokens = max_tokens;
    request.on_event = [&, i](engine::Event&& event) {
      if (event.token) answers[i].push_back(*event.token);
      if (!event.finish) return;
      if (!event.finish->error) done(i, answers[i], event.finish->end_token);
      std::lock_guard lock(mutex);
      if (event.finish->error) error = std::move(event.finish->error);
      --left;
      changed.notify_one();
    };
    { std::lock_guard lock(mutex); ++left; }
    if (auto id = engine.Submit(std::move(request)); !id) {
      std::lock_guard lock(mutex);
      --left;
      submitted = base::Fail(std::move(id).error());
    }
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return left == 0; });
  HB_RETURN_IF_ERROR(submitted);
  if (error) return base::Fail(std::move(*error));
  return {};
}

}  // namespace halfbyte::app
