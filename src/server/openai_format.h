// Parts of OpenAI's answers that the two endpoints share.
#pragma once

#include "server/context.h"
#include "server/job.h"

namespace halfbyte::server {

// JSON has no word for -inf; OpenAI and vLLM write this.
inline constexpr double kLowestLogprob = -9999.0;
double SafeLogprob(float logprob);

// A token as text ("token_id:7" without a tokenizer).
std::string TokenText(const Context& context, int32_t id);

// {"prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details": {"cached_tokens"}}
base::Json UsageJson(const TokenUsage& usage);

// Entries of choices[].logprobs.content of the chat dialect.
base::Json ChatLogprobs(const Context& context, const std::vector<OutputToken>& tokens);

// The completion dialect's {"tokens", "token_logprobs", "top_logprobs", "text_offset"}. Offsets count characters of `text`.
struct CompletionLogprobs {
  base::Json tokens = base::Json::MakeArray(), logprobs = base::Json::MakeArray(), top = base::Json::MakeArray(), offsets = base::Json::MakeArray();
  void Add(const Context& context, int32_t id, const engine::PositionLogprobs* logprobs, int64_t offset);
  base::Json Take();
};

// Characters (code points) of UTF-8.
int64_t CountCharacters(std::string_view utf8);

struct AnswerHead {
  std::string id, object, model, fingerprint;
  int64_t created = 0;
  base::Json Make(base::Json choices) const;
  // A whole answer.
  base::Json Make(base::Json choices, const TokenUsage& usage) const;
  // What ends a stream: the usage chunk where it was asked for, and [DONE].
  std::string Tail(bool include_usage, const TokenUsage& usage) const;
};
AnswerHead MakeHead(const Context& context, std::string id, std::string object);

}  // namespace halfbyte::server
