// /generate, SGLang's own route.
#include "server/api_error.h"
#include "server/generation_fields.h"
#include "server/openai_format.h"
#include "server/routes.h"
#include "server/structured_output.h"

namespace halfbyte::server {
namespace {

constexpr size_t kMaxPrompts = 1024;
constexpr int64_t kMaxLogprobs = 20;

struct SglangOptions {
  bool batch = false;          // the answer is an array
  bool logprobs = false, texts = false;
  int64_t top = 0;
  int64_t prompt_start = -1;   // first prompt position with logprobs; -1: none
  std::vector<std::string> ids;
};

class SglangDialect final : public Dialect {
 public:
  SglangDialect(const Context& context, const JobPlan& plan, SglangOptions options)
      : context_(context), stream_(plan.stream), n_(plan.n), options_(std::move(options)), weight_version_(std::to_string(context.weight_version.load())), prompts_(plan.prompts) {
    choices_.resize(prompts_.size() * static_cast<size_t>(n_));
  }

  void Prompt(int index, std::vector<engine::PositionLogprobs> logprobs) override { choices_[static_cast<size_t>(index)].prompt = std::move(logprobs); }

  std::string Take(Piece piece, const TokenUsage& usage) override {
    State& s = choices_[static_cast<size_t>(piece.index)];
    s.text += piece.text;
    for (OutputToken& t : piece.tokens) s.tokens.push_back(std::move(t));
    s.usage = usage;
    if (piece.finish) s.finish = FinishJson(piece, usage);
    return stream_ ? SseEvent(ChoiceJson(s, piece.index)) : "";
  }
  std::string Tail(const TokenUsage&) override { return std::string(kSseDone); }
  base::Json Whole(const TokenUsage&) override {
    base::Json all = base::Json::MakeArray();
    for (size_t i = 0; i < choices_.size(); ++i) all.Push(ChoiceJson(choices_[i], static_cast<int>(i)));
    return options_.batch || choices_.size() > 1 ? all : all.as_array()[0];
  }

 private:
  struct State {
    std::string text;
    std::vector<OutputToken> tokens;
    std::vector<engine::PositionLogprobs> prompt;
    base::Json finish;
    TokenUsage usage;
  };

  static base::Json FinishJson(const Piece& piece, const TokenUsage& usage) {
    base::Json f = base::Json::MakeObject();
    f.Set("type", *piece.finish);
    if (*piece.finish == "length") f.Set("length", usage.completion);
    if (!piece.matched.empty()) f.Set("matched", piece.matched);
    else if (piece.matched_token) f.Set("matched", *piece.matched_token);
    return f;
  }

  base::Json Entry(float logprob, int32_t id) const {
    return base::Json::Array{SafeLogprob(logprob), id, options_.texts ? base::Json(TokenText(context_, id)) : base::Json()};
  }
  base::Json Top(const engine::PositionLogprobs& p) const {
    base::Json top = base::Json::MakeArray();
    for (const engine::TokenLogprob& l : p.top) top.Push(Entry(l.logprob, l.token));
    return top;
  }

  void SetLogprobs(const State& s, const std::vector<int32_t>& prompt, base::Json& meta) const {
    base::Json tokens = base::Json::MakeArray(), tops = base::Json::MakeArray();
    for (const OutputToken& t : s.tokens)
      if (t.logprobs) {
        tokens.Push(Entry(t.logprobs->logprob, t.id));
        tops.Push(Top(*t.logprobs));
      }
    meta.Set("output_token_logprobs", std::move(tokens));
    if (options_.top > 0) meta.Set("output_top_logprobs", std::move(tops));
    if (options_.prompt_start < 0) return;
    base::Json input = base::Json::MakeArray(), input_tops = base::Json::MakeArray();
    for (size_t i = static_cast<size_t>(options_.prompt_start); i < prompt.size(); ++i) {
      const engine::PositionLogprobs* p = i > 0 && i <= s.prompt.size() ? &s.prompt[i - 1] : nullptr;
      input.Push(p ? Entry(p->logprob, prompt[i]) : base::Json(base::Json::Array{base::Json(), prompt[i], options_.texts ? base::Json(TokenText(context_, prompt[i])) : base::Json()}));
      input_tops.Push(p ? Top(*p) : base::Json());
    }
    meta.Set("input_token_logprobs", std::move(input));
    if (options_.top > 0) meta.Set("input_top_logprobs", std::move(input_tops));
  }

  base::Json ChoiceJson(const State& s, int index) const {
    const std::vector<int32_t>& prompt = prompts_[static_cast<size_t>(index / n_)];
    base::Json out = base::Json::MakeObject(), meta = base::Json::MakeObject(), ids = base::Json::MakeArray();
    meta.Set("id", options_.ids[static_cast<size_t>(index / n_)]);
    meta.Set("finish_reason", s.finish);
    meta.Set("prompt_tokens", prompt.size());
    meta.Set("completion_tokens", s.usage.completion);
    meta.Set("cached_tokens", s.usage.cached);
    meta.Set("weight_version", weight_version_);
    if (options_.logprobs) SetLogprobs(s, prompt, meta);
    for (const OutputToken& t : s.tokens) ids.Push(t.id);
    out.Set("text", s.text);
    out.Set("output_ids", std::move(ids));
    out.Set("meta_info", std::move(meta));
    if (stream_) out.Set("index", index);
    return out;
  }

  const Context& context_;
  const bool stream_;
  const int64_t n_;
  const SglangOptions options_;
  const std::string weight_version_;
  const std::vector<std::vector<int32_t>> prompts_;
  std::vector<State> choices_;
};

// text or input_ids, one or a batch.
void ReadPrompts(Fields& f, const Context& context, JobPlan& plan, SglangOptions& options) {
  const base::Json *text = f.Get("text"), *ids = f.Get("input_ids");
  if (!text == !ids) return f.Fail("text", "exactly one of text and input_ids is wanted");
  if (text) {
    if (!context.tokenizer) return f.Fail("text", "this server runs without a tokenizer: give input_ids");
    std::vector<std::string> texts;
    options.batch = text->is_array();
    f.Strings("text", kMaxPrompts, texts);
    for (const std::string& t : texts) plan.prompts.push_back(context.tokenizer->Encode(t, true));
  } else {
    options.batch = ids->is_array() && !ids->as_array().empty() && ids->as_array()[0].is_array();
    const base::Json batch = options.batch ? *ids : base::Json(base::Json::Array{*ids});
    if (batch.as_array().size() > kMaxPrompts) return f.Fail("input_ids", base::StrCat("has more than ", kMaxPrompts, " entries"));
    for (const base::Json& one : batch.as_array()) {
      base::Json holder = base::Json::MakeObject();
      holder.Set("input_ids", one);
      Fields inner(holder);
      inner.Tokens("input_ids", context.vocab(), plan.prompts.emplace_back());
      if (inner.error()) return f.Fail(*inner.error());
    }
  }
  if (plan.prompts.empty()) f.Fail("text", "is empty");
}

}  // namespace

void SglangGenerate(Context& context, const ExchangePtr& exchange, const base::Json& body) {
  Fields f(body);
  JobPlan plan;
  SglangOptions options;
  ReadPrompts(f, context, plan, options);
  const base::Json none = base::Json::MakeObject();
  const base::Json* params = f.Get("sampling_params");
  if (params && !params->is_object()) f.Fail("sampling_params", base::StrCat("has type ", params->type_name(), ", an object is wanted"));
  Fields sampling(params ? *params : none, "sampling_params.");
  ReadSglangSampling(sampling, context, plan);
  plan.request.constraint = ReadSglangFormat(sampling, context);
  if (sampling.error()) f.Fail(*sampling.error());
  f.Bool("stream", plan.stream);
  f.Bool("return_logprob", options.logprobs);
  f.Bool("return_text_in_logprobs", options.texts);
  f.Int("top_logprobs_num", 0, kMaxLogprobs, options.top);
  f.Int("logprob_start_len", -1, int64_t{1} << 31, options.prompt_start);
  plan.id = NewId("");
  f.String("rid", plan.id);
  f.Refuse("lora_path", base::Json(), "is not supported");
  f.Refuse("image_data", base::Json(), "is not supported");
  f.Refuse("return_hidden_states", false, "is not supported");
  if (f.error()) return exchange->Send(ErrorResponse(*f.error()));
  WarnUnknown(f.Unknown());
  WarnUnknown(sampling.Unknown());
  for (size_t i = 0; i < plan.prompts.size(); ++i) options.ids.push_back(i ? base::StrCat(plan.id, "-", i) : plan.id);
  if (options.logprobs) {
    plan.request.sampling.logprobs = static_cast<int32_t>(options.top);
    if (options.prompt_start >= 0) plan.request.prompt_logprobs = static_cast<int32_t>(options.top);
  }
  auto dialect = std::make_unique<SglangDialect>(context, plan, std::move(options));
  Job::Start(context, exchange, std::move(plan), std::move(dialect));
}

}  // namespace halfbyte::server
