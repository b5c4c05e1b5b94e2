#include "server/generation_fields.h"

#include <random>

#include "base/log.h"

namespace halfbyte::server {
namespace {

constexpr int64_t kMaxChoices = 128;     // as OpenAI
constexpr size_t kMaxStops = 64;         // OpenAI takes 4
constexpr double kMaxTemperature = 100;  // OpenAI takes 2; other servers take what they get
constexpr double kSmallestTopP = 1e-6;   // 0 means the likeliest token only, for clients that send it

void ReadLogitBias(Fields& f, int64_t vocab, engine::SamplingParams& p) {
  const base::Json* bias = f.Get("logit_bias");
  if (!bias) return;
  if (!bias->is_object()) return f.Fail("logit_bias", base::StrCat("has type ", bias->type_name(), ", an object is wanted"));
  if (bias->as_object().size() > static_cast<size_t>(engine::kMaxLogitBias)) return f.Fail("logit_bias", base::StrCat("has more than ", engine::kMaxLogitBias, " entries"));
  for (const auto& [key, value] : bias->as_object()) {
    int64_t id = -1;
    if (!key.empty() && key.size() < 10 && key.find_first_not_of("0123456789") == key.npos) id = std::stoll(key);
    if (id < 0 || id >= vocab) return f.Fail("logit_bias", base::StrCat("\"", key.substr(0, 40), "\" is no token id"));
    if (!value.is_number() || !(value.as_double() >= -100 && value.as_double() <= 100)) return f.Fail("logit_bias", "values are numbers from -100 to 100");
    p.logit_bias.emplace_back(static_cast<int32_t>(id), static_cast<float>(value.as_double()));
  }
}

uint64_t RandomSeed() {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return random();
}

// The fields that have the same name everywhere.
void ReadSampling(Fields& f, const Context& context, JobPlan& plan) {
  engine::SamplingParams& p = plan.request.sampling;
  p = DefaultSampling(context.options.generation_config);
  f.Float("temperature", 0, kMaxTemperature, p.temperature);
  double top_p = p.top_p;
  f.Double("top_p", 0, 1, top_p);
  p.top_p = static_cast<float>(std::max(top_p, kSmallestTopP));
  f.Int("top_k", -1, int64_t{1} << 31, p.top_k);
  f.Float("min_p", 0, 1, p.min_p);
  f.Float("repetition_penalty", 0.01, 100, p.repetition_penalty);
  f.Float("presence_penalty", -2, 2, p.presence_penalty);
  f.Float("frequency_penalty", -2, 2, p.frequency_penalty);
  ReadLogitBias(f, context.vocab(), p);
  f.Strings("stop", kMaxStops, plan.choice.stop);
  for (const std::string& s : plan.choice.stop)
    if (s.empty()) f.Fail("stop", "holds an empty string");
  if (!plan.choice.stop.empty() && !context.tokenizer) f.Fail("stop", "needs a tokenizer, and this server runs without (use stop_token_ids)");
  f.Tokens("stop_token_ids", context.vocab(), plan.request.stop_ids);
  f.Bool("ignore_eos", plan.request.ignore_eos);
  f.Bool("skip_special_tokens", plan.choice.skip_special_tokens);
  f.Int("n", 1, kMaxChoices, plan.n);
}

void SetSeed(const std::optional<int64_t>& seed, engine::SamplingParams& p) { p.seed = seed ? static_cast<uint64_t>(*seed) : RandomSeed(); }

}  // namespace

engine::SamplingParams DefaultSampling(const base::Json& g) {
  engine::SamplingParams p;
  p.temperature = 1;
  if (!g.is_object()) return p;
  const base::Json* sample = g.Find("do_sample");
  auto number = [&](const char* key, auto low, auto high, auto& out) {
    const base::Json* v = g.Find(key);
    if (v && v->is_number() && v->as_double() >= low && v->as_double() <= high) out = static_cast<std::decay_t<decltype(out)>>(v->as_double());
  };
  number("temperature", 0, kMaxTemperature, p.temperature);
  number("top_p", kSmallestTopP, 1, p.top_p);
  number("top_k", 0, 1 << 30, p.top_k);
  number("min_p", 0, 1, p.min_p);
  number("repetition_penalty", 0.01, 100, p.repetition_penalty);
  if (sample && sample->is_bool() && !sample->as_bool()) p.temperature = 0;
  return p;
}

OpenAiCommon ReadOpenAiCommon(Fields& f, const Context& context, JobPlan& plan) {
  OpenAiCommon common;
  ReadSampling(f, context, plan);
  std::optional<int64_t> seed;
  f.Int("seed", INT64_MIN, INT64_MAX, seed);
  SetSeed(seed, plan.request.sampling);
  f.Int("min_tokens", 0, int64_t{1} << 31, plan.request.min_tokens);
  plan.choice.min_tokens = plan.request.min_tokens;
  f.Bool("stream", plan.stream);
  if (const base::Json* options = f.Get("stream_options")) {
    if (!options->is_object()) f.Fail("stream_options", "an object is wanted");
    else if (!plan.stream) f.Fail("stream_options", "only together with stream: true");
    Fields inner(*options, "stream_options.");
    inner.Bool("include_usage", common.include_usage);
    if (inner.error()) f.Fail(*inner.error());
  }
  f.Ignore({"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "model"});
  return common;
}

void ReadSglangSampling(Fields& f, const Context& context, JobPlan& plan) {
  ReadSampling(f, context, plan);
  std::optional<int64_t> seed;
  f.Int("sampling_seed", INT64_MIN, INT64_MAX, seed);
  SetSeed(seed, plan.request.sampling);
  plan.request.max_tokens = 128;  // SGLang's default
  f.Int("max_new_tokens", 0, int64_t{1} << 31, plan.request.max_tokens);
  f.Int("min_new_tokens", 0, int64_t{1} << 31, plan.request.min_tokens);
  plan.choice.min_tokens = plan.request.min_tokens;
  f.Refuse("no_stop_trim", false, "is not supported: stop strings are never part of the text");
  f.Ignore({"spaces_between_special_tokens"});
}

void CheckModelName(Fields& f, const Context& context) {
  std::string name;
  f.String("model", name);
  if (name.empty() || name == context.options.model_name || name == context.options.model_path || name == "default") return;
  f.Fail(ApiError{404, base::StrCat("the model \"", name.substr(0, 200), "\" is not here; this server runs \"", context.options.model_name, "\""), "model", "model_not_found"});
}

void WarnUnknown(const std::vector<std::string>& fields) {
  static std::mutex mutex;
  static std::set<std::string> warned;
  std::lock_guard lock(mutex);
  for (const std::string& name : fields) {
    if (warned.size() >= 1000) return;  // nobody can fill memory or log by making names up
    const std::string shown = base::Json(name.substr(0, 100)).Dump();
    if (warned.insert(shown).second) base::LogWarning("request field ", shown, " is unknown and ignored");
  }
}

}  // namespace halfbyte::server
