// /v1/chat/completions
#include "server/api_error.h"
#include "server/chat_messages.h"
#include "server/chat_text.h"
#include "server/generation_fields.h"
#include "server/openai_format.h"
#include "server/routes.h"

namespace halfbyte::server {
namespace {

constexpr int64_t kMaxTopLogprobs = 20;  // OpenAI's

struct ChatOptions {
  bool include_usage = false, logprobs = false, parallel_calls = true;
  bool forced_call = false;  // the whole answer is one call as JSON (tool_choice required or named)
  ChatText::Options text;
};

class ChatDialect final : public Dialect {
 public:
  ChatDialect(const Context& context, const JobPlan& plan, const ChatOptions& options)
      : context_(context), head_(MakeHead(context, plan.id, plan.stream ? "chat.completion.chunk" : "chat.completion")), stream_(plan.stream), options_(options) {
    for (int64_t i = 0; i < plan.n; ++i) choices_.emplace_back(options.text);
  }

  std::string Take(Piece piece, const TokenUsage&) override {
    State& s = choices_[static_cast<size_t>(piece.index)];
    ChatPart part = Understand(s, piece);
    if (!options_.parallel_calls && s.calls + part.calls.size() > 1) part.calls.resize(s.calls ? 0 : 1);
    const size_t first_call = s.calls;
    s.calls += part.calls.size();
    if (piece.finish) s.finish = s.calls && *piece.finish == "stop" ? "tool_calls" : *piece.finish;
    if (!piece.matched.empty()) s.stop_reason = piece.matched;
    if (stream_) return Chunks(s, piece, part, first_call);
    s.whole.reasoning += part.reasoning;
    s.whole.content += part.content;
    for (ToolCall& c : part.calls) s.whole.calls.push_back(std::move(c));
    if (options_.logprobs)
      for (OutputToken& t : piece.tokens) s.tokens.push_back(std::move(t));
    return "";
  }

  std::string Tail(const TokenUsage& usage) override { return head_.Tail(options_.include_usage, usage); }

  base::Json Whole(const TokenUsage& usage) override {
    base::Json choices = base::Json::MakeArray();
    for (size_t i = 0; i < choices_.size(); ++i) choices.Push(WholeChoice(choices_[i], i));
    return head_.Make(std::move(choices), usage);
  }

 private:
  struct State {
    explicit State(const ChatText::Options& o) : text(o) {}
    ChatText text;
    std::string forced;  // the text of a forced call
    bool begun = false;
    size_t calls = 0;
    ChatPart whole;
    std::vector<OutputToken> tokens;
    base::Json finish, stop_reason;
  };

  ChatPart Understand(State& s, const Piece& piece) {
    if (options_.forced_call) {
      s.forced += piece.text;
      ChatPart part;
      if (piece.finish && !FindToolFormat("hermes")->parse(s.forced, part.calls)) part.content = s.forced;  // cut off by max_tokens
      return part;
    }
    ChatPart part = s.text.Push(piece.text);
    if (piece.finish) {
      ChatPart last = s.text.Finish();
      part.reasoning += last.reasoning;
      part.content += last.content;
      for (ToolCall& c : last.calls) part.calls.push_back(std::move(c));
    }
    return part;
  }

  base::Json CallJson(const ToolCall& call) const {
    base::Json function = base::Json::MakeObject(), json = base::Json::MakeObject();
    function.Set("name", call.name);
    function.Set("arguments", call.arguments);
    json.Set("id", NewId("call_"));
    json.Set("type", "function");
    json.Set("function", std::move(function));
    return json;
  }

  base::Json LogprobsJson(const std::vector<OutputToken>& tokens) const {
    base::Json out = base::Json::MakeObject();
    out.Set("content", ChatLogprobs(context_, tokens));
    out.Set("refusal", base::Json());
    return out;
  }

  std::string Chunk(int index, base::Json delta, base::Json logprobs, base::Json finish, base::Json stop_reason = {}) const {
    base::Json choice = base::Json::MakeObject();
    choice.Set("index", index);
    choice.Set("delta", std::move(delta));
    choice.Set("logprobs", std::move(logprobs));
    choice.Set("finish_reason", std::move(finish));
    if (!stop_reason.is_null()) choice.Set("stop_reason", std::move(stop_reason));
    return SseEvent(head_.Make(base::Json::Array{std::move(choice)}));
  }

  std::string Chunks(State& s, const Piece& piece, ChatPart& part, size_t first_call) const {
    std::string out;
    auto delta = [](const char* key, base::Json value) {
      base::Json d = base::Json::MakeObject();
      d.Set(key, std::move(value));
      return d;
    };
    if (!s.begun) {
      s.begun = true;
      base::Json d = delta("role", "assistant");
      d.Set("content", "");
      out += Chunk(piece.index, std::move(d), {}, {});
    }
    base::Json logprobs = options_.logprobs && !piece.tokens.empty() ? LogprobsJson(piece.tokens) : base::Json();
    if (!part.reasoning.empty()) out += Chunk(piece.index, delta("reasoning_content", std::move(part.reasoning)), std::exchange(logprobs, {}), {});
    if (!part.content.empty() || !logprobs.is_null()) out += Chunk(piece.index, delta("content", std::move(part.content)), std::move(logprobs), {});
    for (size_t i = 0; i < part.calls.size(); ++i) {
      base::Json call = CallJson(part.calls[i]);
      call.Set("index", first_call + i);
      out += Chunk(piece.index, delta("tool_calls", base::Json::Array{std::move(call)}), {}, {});
    }
    if (piece.finish) out += Chunk(piece.index, base::Json::MakeObject(), {}, s.finish, s.stop_reason);
    return out;
  }

  base::Json WholeChoice(State& s, size_t index) const {
    base::Json message = base::Json::MakeObject(), choice = base::Json::MakeObject();
    message.Set("role", "assistant");
    const bool blank = s.whole.content.find_first_not_of(" \t\r\n") == std::string::npos;
    message.Set("content", blank && !s.whole.calls.empty() ? base::Json() : base::Json(std::move(s.whole.content)));
    message.Set("refusal", base::Json());
    if (!s.whole.reasoning.empty()) message.Set("reasoning_content", std::move(s.whole.reasoning));
    if (!s.whole.calls.empty()) {
      base::Json calls = base::Json::MakeArray();
      for (const ToolCall& c : s.whole.calls) calls.Push(CallJson(c));
      message.Set("tool_calls", std::move(calls));
    }
    choice.Set("index", index);
    choice.Set("message", std::move(message));
    choice.Set("logprobs", options_.logprobs ? LogprobsJson(s.tokens) : base::Json());
    choice.Set("finish_reason", s.finish);
    choice.Set("stop_reason", s.stop_reason);
    return choice;
  }

  const Context& context_;
  const AnswerHead head_;
  const bool stream_;
  const ChatOptions options_;
  std::vector<State> choices_;
};

// The schema of one call of a tool: {"name": NAME, "arguments": PARAMETERS}.
base::Json CallSchema(const base::Json& tool) {
  const base::Json& function = *tool.Find("function");
  base::Json name = base::Json::MakeObject(), properties = base::Json::MakeObject(), schema = base::Json::MakeObject();
  name.Set("const", *function.Find("name"));
  const base::Json* parameters = function.Find("parameters");
  base::Json any = base::Json::MakeObject();
  any.Set("type", "object");
  properties.Set("name", std::move(name));
  properties.Set("arguments", parameters && parameters->is_object() && !parameters->as_object().empty() ? *parameters : any);
  schema.Set("type", "object");
  schema.Set("properties", std::move(properties));
  schema.Set("required", base::Json::Array{"name", "arguments"});
  schema.Set("additionalProperties", false);
  return schema;
}

// tool_choice: "none" hides the tools, "auto" leaves it to the model, "required" and a name make the grammar ask for a call.
void ReadToolChoice(Fields& f, Context& context, base::Json& tools, JobPlan& plan, ChatOptions& options) {
  f.Bool("parallel_tool_calls", options.parallel_calls);
  const base::Json* choice = f.Get("tool_choice");
  base::Json wanted = base::Json::MakeArray();
  if (choice && choice->is_string()) {
    const std::string& c = choice->as_string();
    if (c == "none") tools = {};
    else if (c == "required") wanted = tools;
    else if (c != "auto") return f.Fail("tool_choice", "none, auto, required or a function is wanted");
    if (c == "required" && tools.is_null()) return f.Fail("tool_choice", "needs tools");
  } else if (choice) {
    const base::Json* function = choice->Find("function");
    const base::Json* name = function ? function->Find("name") : nullptr;
    if (!name || !name->is_string()) return f.Fail("tool_choice", "none, auto, required or {\"type\": \"function\", \"function\": {\"name\"}} is wanted");
    if (!tools.is_null())
      for (const base::Json& t : tools.as_array())
        if (*t.Find("function")->Find("name") == *name) wanted.Push(t);
    if (wanted.as_array().empty()) return f.Fail("tool_choice", base::StrCat("names \"", name->as_string().substr(0, 100), "\", which is not among tools"));
  }
  if (!tools.is_null()) options.text.tools = FindToolFormat("hermes");
  if (!wanted.is_array() || wanted.as_array().empty()) return;
  if (plan.request.constraint) return f.Fail("tool_choice", "not together with response_format");
  if (!context.grammars) return f.Fail("tool_choice", "needs a tokenizer, and this server runs without");
  base::Json schema = CallSchema(wanted.as_array()[0]);
  if (wanted.as_array().size() > 1) {
    base::Json any = base::Json::MakeArray();
    for (const base::Json& t : wanted.as_array()) any.Push(CallSchema(t));
    schema = base::Json::MakeObject();
    schema.Set("anyOf", std::move(any));
  }
  auto constraint = context.grammars->JsonSchema(schema);
  if (!constraint) return f.Fail("tools", base::StrCat("tool_choice cannot be honoured with these parameters: ", constraint.error().ToString()));
  plan.request.constraint = std::move(*constraint);
  options.forced_call = true;
}

void RenderPrompt(Fields& f, const Context& context, const base::Json& messages, const base::Json& tools, JobPlan& plan, ChatOptions& options) {
  bool add_prompt = true, go_on = false;
  f.Bool("add_generation_prompt", add_prompt);
  f.Bool("continue_final_message", go_on);
  base::Json extra = base::Json::MakeObject();
  if (const base::Json* given = f.Get("chat_template_kwargs")) {
    if (!given->is_object()) return f.Fail("chat_template_kwargs", "an object is wanted");
    extra = *given;
  }
  if (go_on) {
    extra.Set("continue_final_message", true);
    if (!f.Get("add_generation_prompt")) add_prompt = false;
  }
  if (f.error()) return;
  if (!context.tokenizer) return f.Fail(ApiError{400, "this server runs without a tokenizer: use /v1/completions with token ids", "", "no_tokenizer"});
  if (!context.chat_template) return f.Fail(ApiError{400, "this model has no chat template; start the server with --chat-template FILE, or use /v1/completions", "", "no_chat_template"});
  auto text = context.chat_template->Render(messages, tools, add_prompt, extra);
  if (!text) return f.Fail("messages", base::StrCat("the chat template refused them: ", text.error().ToString()));
  plan.prompts.push_back(context.tokenizer->Encode(*text, false));  // the template writes the special tokens (user case row 179)
  const size_t last = text->find_last_not_of(" \t\r\n");
  options.text.starts_in_reasoning = last != text->npos && std::string_view(*text).substr(0, last + 1).ends_with("<think>");
}

}  // namespace

void ChatCompletions(Context& context, const ExchangePtr& exchange, const base::Json& body) {
  Fields f(body);
  CheckModelName(f, context);
  JobPlan plan;
  plan.id = NewId("chatcmpl-");
  ChatOptions options;
  options.include_usage = ReadOpenAiCommon(f, context, plan).include_usage;
  f.Int("max_tokens", 1, int64_t{1} << 31, plan.request.max_tokens);
  f.Int("max_completion_tokens", 1, int64_t{1} << 31, plan.request.max_tokens);
  f.Bool("logprobs", options.logprobs);
  std::optional<int64_t> top;
  f.Int("top_logprobs", 0, kMaxTopLogprobs, top);
  if (top && !options.logprobs) f.Fail("top_logprobs", "only together with logprobs: true");
  if (options.logprobs) plan.request.sampling.logprobs = static_cast<int32_t>(top.value_or(0));
  f.Bool("separate_reasoning", options.text.split_reasoning);
  plan.request.constraint = ReadResponseFormat(f, context);
  base::Json messages = ReadMessages(f), tools = ReadTools(f);
  f.Refuse("functions", base::Json(), "is not supported: use tools");
  f.Refuse("function_call", base::Json(), "is not supported: use tool_choice");
  f.Refuse("audio", base::Json(), "is not supported");
  f.Refuse("modalities", base::Json(base::Json::Array{"text"}), "only [\"text\"] is supported");
  f.Refuse("web_search_options", base::Json(), "is not supported");
  f.Ignore({"prediction", "verbosity"});
  if (!f.error()) ReadToolChoice(f, context, tools, plan, options);
  if (!f.error()) RenderPrompt(f, context, messages, tools, plan, options);
  if (f.error()) return exchange->Send(ErrorResponse(*f.error()));
  if (plan.request.constraint) options.text.split_reasoning = false;
  WarnUnknown(f.Unknown());
  auto dialect = std::make_unique<ChatDialect>(context, plan, options);
  Job::Start(context, exchange, std::move(plan), std::move(dialect));
}

}  // namespace halfbyte::server
