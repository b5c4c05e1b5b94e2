#include "generation_options.h"

#include "options.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace halfbyte::app {

void GenerationOptions::AddTo(CLI::App& c) {
  AddInteger(c, "--max-tokens", max_tokens, 0, kAnyInteger, "tokens to generate at most");
  AddReal(c, "--temperature", temperature, {0, 100}, "0: greedy");
  AddReal(c, "--top-p", top_p, {0, 1, /*min_excluded=*/true}, "sample from the likeliest tokens that have this probability together");
  AddInteger(c, "--top-k", top_k, 0, kAnyInteger, "sample from this many of the likeliest tokens; 0: all");
  AddReal(c, "--min-p", min_p, {0, 1}, "sample from tokens that are at least this likely beside the likeliest");
  AddInteger(c, "--seed", seed, 0, kAnyInteger, "the same seed, the same samples");
  c.add_option("--stop", stop, "end the answer before this text (may be repeated)")->check(CheckNotEmpty);
}

engine::SamplingParams GenerationOptions::Sampling() const {
  engine::SamplingParams p;
  p.temperature = static_cast<float>(temperature);
  p.top_p = static_cast<float>(top_p);
  p.min_p = static_cast<float>(min_p);
  p.top_k = top_k;
  p.seed = static_cast<uint64_t>(seed);
  return p;
}

engine::EngineOptions SequenceNeeds::Engine(const model::ModelSpec& spec) const {
  engine::EngineOptions o;
  o.max_batch = sequences;
  const int64_t room = std::max<int64_t>(spec.max_positions - prompt_tokens, 0);
  o.kv_cache_tokens = sequences * (prompt_tokens + std::min(max_tokens, room) + o.block_tokens);
  o.prefix_cache = engine::PrefixCache::kOff;
  o.kv_dtype = KvDtype(kv_cache_dtype);
  return o;
}

base::Status SequenceNeeds::Check(const model::Admission& admission, const std::string& remedy) const {
  const int64_t longest = admission.spec.max_positions;
  if (prompt_tokens + (max_tokens > 0) > longest)
    return base::Fail(base::ErrorCode::kInvalidArgument, "the prompt has ", prompt_tokens, " tokens; prompt and answer together may have ", longest, " in this model");
  const engine::EngineOptions o = Engine(admission.spec);
  return CheckCache(admission, {.block_tokens = o.block_tokens, .sequences = sequences, .cache_tokens = o.kv_cache_tokens, .kv_dtype = o.kv_dtype}, remedy);
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
