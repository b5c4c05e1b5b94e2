// /v1/completions
#include "server/api_error.h"
#include "server/generation_fields.h"
#include "server/openai_format.h"
#include "server/routes.h"

namespace halfbyte::server {
namespace {

constexpr int64_t kDefaultMaxTokens = 16;  // OpenAI's
constexpr int64_t kMaxLogprobs = 20;       // as vLLM; OpenAI's limit is 5
constexpr size_t kMaxPrompts = 1024;

struct Echo {
  std::string text;
  std::vector<int32_t> tokens;
};

class CompletionDialect final : public Dialect {
 public:
  CompletionDialect(const Context& context, const JobPlan& plan, bool include_usage, bool logprobs, std::vector<Echo> echo)
      : context_(context), head_(MakeHead(context, plan.id, "text_completion")), stream_(plan.stream), include_usage_(include_usage), logprobs_(logprobs), n_(plan.n), echo_(std::move(echo)),
        choices_(plan.prompts.size() * static_cast<size_t>(plan.n)) {}

  void Prompt(int index, std::vector<engine::PositionLogprobs> logprobs) override { choices_[static_cast<size_t>(index)].prompt = std::move(logprobs); }

  std::string Take(Piece piece, const TokenUsage&) override {
    State& s = choices_[static_cast<size_t>(piece.index)];
    std::string text;
    if (!s.begun) text = BeginChoice(s, piece.index);
    for (const OutputToken& t : piece.tokens)
      if (logprobs_) s.logprobs.Add(context_, t.id, t.logprobs ? &*t.logprobs : nullptr, s.characters + CountCharacters(std::string_view(piece.text).substr(0, t.offset > s.bytes ? std::min(t.offset - s.bytes, piece.text.size()) : 0)));
    s.characters += CountCharacters(piece.text);
    s.bytes += piece.text.size();
    text += piece.text;
    if (piece.finish) s.finish = *piece.finish;
    s.stop_reason = !piece.matched.empty() ? base::Json(piece.matched) : base::Json();
    if (!stream_) {
      s.text += text;
      return "";
    }
    return SseEvent(head_.Make(base::Json::Array{ChoiceJson(s, piece.index, std::move(text))}));
  }

  std::string Tail(const TokenUsage& usage) override { return head_.Tail(include_usage_, usage); }

  base::Json Whole(const TokenUsage& usage) override {
    base::Json choices = base::Json::MakeArray();
    for (size_t i = 0; i < choices_.size(); ++i) choices.Push(ChoiceJson(choices_[i], static_cast<int>(i), std::move(choices_[i].text)));
    return head_.Make(std::move(choices), usage);
  }

 private:
  struct State {
    bool begun = false;
    std::vector<engine::PositionLogprobs> prompt;
    CompletionLogprobs logprobs;
    std::string text;
    base::Json finish, stop_reason;
    int64_t characters = 0;  // of echo and answer so far
    size_t bytes = 0;        // of the answer so far
  };

  // The echo of the prompt.
  std::string BeginChoice(State& s, int index) {
    s.begun = true;
    if (echo_.empty()) return "";
    const Echo& echo = echo_[static_cast<size_t>(index / n_)];
    if (logprobs_) {
      int64_t at = 0;
      for (size_t i = 0; i < echo.tokens.size(); ++i) {
        s.logprobs.Add(context_, echo.tokens[i], i > 0 && i <= s.prompt.size() ? &s.prompt[i - 1] : nullptr, at);
        at += CountCharacters(TokenText(context_, echo.tokens[i]));
      }
    }
    s.characters = CountCharacters(echo.text);
    return echo.text;
  }

  base::Json ChoiceJson(State& s, int index, std::string text) {
    base::Json choice = base::Json::MakeObject();
    choice.Set("index", index);
    choice.Set("text", std::move(text));
    choice.Set("logprobs", logprobs_ ? s.logprobs.Take() : base::Json());
    choice.Set("finish_reason", s.finish);
    choice.Set("stop_reason", s.stop_reason);
    return choice;
  }

  const Context& context_;
  const AnswerHead head_;
  const bool stream_, include_usage_, logprobs_;
  const int64_t n_;
  const std::vector<Echo> echo_;
  std::vector<State> choices_;
};

// "prompt": a string, an array of strings, an array of token ids, or an array of those.
void ReadPrompts(Fields& f, const Context& context, JobPlan& plan, std::vector<Echo>& echo) {
  const base::Json* prompt = f.Get("prompt");
  if (!prompt) return f.Fail("prompt", "is missing");
  auto text = [&](const base::Json& p) {
    if (!context.tokenizer) return f.Fail("prompt", "is text, and this server runs without a tokenizer: give token ids");
    plan.prompts.push_back(context.tokenizer->Encode(p.as_string(), true));
    echo.push_back({p.as_string(), plan.prompts.back()});
  };
  auto tokens = [&](const base::Json& p) {
    base::Json holder = base::Json::MakeObject();
    holder.Set("prompt", p);
    Fields inner(holder);
    std::vector<int32_t> ids;
    inner.Tokens("prompt", context.vocab(), ids);
    if (inner.error()) return f.Fail(*inner.error());
    echo.push_back({context.tokenizer ? context.tokenizer->Decode(ids, plan.choice.skip_special_tokens) : "", ids});
    plan.prompts.push_back(std::move(ids));
  };
  if (prompt->is_string()) return text(*prompt);
  if (!prompt->is_array() || prompt->as_array().empty()) return f.Fail("prompt", "a string, an array of strings, or an array of token ids is wanted");
  if (prompt->as_array()[0].is_number()) return tokens(*prompt);
  if (prompt->as_array().size() > kMaxPrompts) return f.Fail("prompt", base::StrCat("has more than ", kMaxPrompts, " entries"));
  for (const base::Json& p : prompt->as_array()) {
    if (p.is_string()) text(p);
    else if (p.is_array()) tokens(p);
    else return f.Fail("prompt", "a string, an array of strings, or an array of token ids is wanted");
  }
}

}  // namespace

void Completions(Context& context, const ExchangePtr& exchange, const base::Json& body) {
  Fields f(body);
  CheckModelName(f, context);
  JobPlan plan;
  plan.id = NewId("cmpl-");
  const OpenAiCommon common = ReadOpenAiCommon(f, context, plan);
  plan.request.max_tokens = kDefaultMaxTokens;
  f.Int("max_tokens", 0, int64_t{1} << 31, plan.request.max_tokens);
  bool echo = false;
  f.Bool("echo", echo);
  std::optional<int64_t> logprobs;
  f.Int("logprobs", 0, kMaxLogprobs, logprobs);
  if (logprobs) {
    plan.request.sampling.logprobs = static_cast<int32_t>(*logprobs);
    if (echo) plan.request.prompt_logprobs = static_cast<int32_t>(*logprobs);
  }
  std::optional<int64_t> best_of;
  f.Int("best_of", 1, 128, best_of);
  if (best_of && *best_of != plan.n) f.Fail("best_of", "is not supported: it must be absent or equal to n");
  f.Refuse("suffix", base::Json(""), "is not supported");
  f.Refuse("response_format", base::Json::Parse(R"({"type": "text"})").value(), "is not supported here");
  if (plan.request.max_tokens == 0 && !echo) f.Fail("max_tokens", "0 makes sense only with echo");
  std::vector<Echo> echoes;
  if (!f.error()) ReadPrompts(f, context, plan, echoes);
  if (f.error()) return exchange->Send(ErrorResponse(*f.error()));
  WarnUnknown(f.Unknown());
  if (!echo) echoes.clear();
  auto dialect = std::make_unique<CompletionDialect>(context, plan, common.include_usage, logprobs.has_value(), std::move(echoes));
  Job::Start(context, exchange, std::move(plan), std::move(dialect));
}

}  // namespace halfbyte::server
