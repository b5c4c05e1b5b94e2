#include "server/openai_format.h"

#include <algorithm>
#include <cmath>

namespace halfbyte::server {

double SafeLogprob(float logprob) { return std::isnan(logprob) ? kLowestLogprob : std::clamp(static_cast<double>(logprob), kLowestLogprob, 0.0); }

std::string TokenText(const Context& context, int32_t id) {
  return context.tokenizer ? context.tokenizer->TokenBytes(id) : base::StrCat("token_id:", id);
}

base::Json UsageJson(const TokenUsage& u) {
  base::Json usage = base::Json::MakeObject(), details = base::Json::MakeObject();
  details.Set("cached_tokens", u.cached);
  usage.Set("prompt_tokens", u.prompt);
  usage.Set("completion_tokens", u.completion);
  usage.Set("total_tokens", u.prompt + u.completion);
  usage.Set("prompt_tokens_details", std::move(details));
  return usage;
}

namespace {

base::Json ChatToken(const Context& context, int32_t id, float logprob) {
  const std::string text = TokenText(context, id);
  base::Json token = base::Json::MakeObject(), bytes = base::Json::MakeArray();
  for (char c : text) bytes.Push(static_cast<int64_t>(static_cast<unsigned char>(c)));
  token.Set("token", text);
  token.Set("logprob", SafeLogprob(logprob));
  token.Set("bytes", std::move(bytes));
  return token;
}

}  // namespace

base::Json ChatLogprobs(const Context& context, const std::vector<OutputToken>& tokens) {
  base::Json content = base::Json::MakeArray();
  for (const OutputToken& t : tokens) {
    if (!t.logprobs) continue;
    base::Json entry = ChatToken(context, t.id, t.logprobs->logprob), top = base::Json::MakeArray();
    for (const engine::TokenLogprob& l : t.logprobs->top) top.Push(ChatToken(context, l.token, l.logprob));
    entry.Set("top_logprobs", std::move(top));
    content.Push(std::move(entry));
  }
  return content;
}

void CompletionLogprobs::Add(const Context& context, int32_t id, const engine::PositionLogprobs* p, int64_t offset) {
  tokens.Push(TokenText(context, id));
  offsets.Push(offset);
  logprobs.Push(p ? base::Json(SafeLogprob(p->logprob)) : base::Json());
  if (!p) return top.Push(base::Json());
  base::Json likeliest = base::Json::MakeObject();
  for (const engine::TokenLogprob& l : p->top) {
    const std::string text = base::Json(TokenText(context, l.token)).Dump();  // two tokens may look the same once they are JSON; the likelier stays
    base::Json parsed = base::Json::Parse(text).value_or(base::Json(""));
    if (!likeliest.Find(parsed.as_string())) likeliest.Set(parsed.as_string(), SafeLogprob(l.logprob));
  }
  top.Push(std::move(likeliest));
}

base::Json CompletionLogprobs::Take() {
  base::Json out = base::Json::MakeObject();
  out.Set("text_offset", std::move(offsets));
  out.Set("token_logprobs", std::move(logprobs));
  out.Set("tokens", std::move(tokens));
  out.Set("top_logprobs", std::move(top));
  *this = {};
  return out;
}

int64_t CountCharacters(std::string_view utf8) {
  return std::count_if(utf8.begin(), utf8.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

base::Json AnswerHead::Make(base::Json choices) const {
  base::Json out = base::Json::MakeObject();
  out.Set("id", id);
  out.Set("object", object);
  out.Set("created", created);
  out.Set("model", model);
  out.Set("system_fingerprint", fingerprint);
  out.Set("choices", std::move(choices));
  return out;
}

base::Json AnswerHead::Make(base::Json choices, const TokenUsage& usage) const {
  base::Json out = Make(std::move(choices));
  out.Set("usage", UsageJson(usage));
  return out;
}

std::string AnswerHead::Tail(bool include_usage, const TokenUsage& usage) const {
  std::string out = include_usage ? SseEvent(Make(base::Json::MakeArray(), usage)) : "";
  return out.append(kSseDone);
}

AnswerHead MakeHead(const Context& context, std::string id, std::string object) {
  return {std::move(id), std::move(object), context.options.model_name, context.Fingerprint(), UnixSeconds()};
}

}  // namespace halfbyte::server
