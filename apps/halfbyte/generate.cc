// halfbyte generate: one completion.
#include <chrono>
#include <cstdio>
#include <memory>

#include "generation_options.h"
#include "input.h"
#include "options.h"
#include "text/stop_strings.h"
#include "text/streaming_detokenizer.h"
#include "text_side.h"

namespace halfbyte::app {
namespace {

struct Options {
  ModelOptions model;
  GenerationOptions generation;
  std::string prompt, prompt_file, chat_template;
  std::vector<int32_t> tokens;
  bool chat = false;
};

base::Result<std::string> PromptText(const Options& o) {
  if (o.prompt_file.empty()) return o.prompt;
  HB_ASSIGN_OR_RETURN(std::string text, ReadInput(o.prompt_file, "--prompt-file", kTextLimit));
  if (text.empty()) return base::Fail(base::ErrorCode::kInvalidArgument, "--prompt-file ", o.prompt_file, " is empty; a prompt needs some text");
  return text;
}

base::Result<std::vector<int32_t>> PromptTokens(const Options& o, const TextSide& text) {
  if (!o.tokens.empty()) return o.tokens;
  HB_ASSIGN_OR_RETURN(const std::string prompt, PromptText(o));
  WarnOfInvalidUtf8(prompt, "the prompt");
  if (o.chat) {
    base::Json messages = base::Json::MakeArray();
    messages.Push(Message("user", prompt));
    return text.EncodeChat(messages);
  }
  HB_ASSIGN_OR_RETURN(const text::Tokenizer* tokenizer, text.tokenizer());
  return tokenizer->Encode(prompt, true);
}

base::Json Timings(const engine::Generation& g, size_t prompt) {
  base::Json t = base::Json::MakeObject();
  const double decode = g.total_seconds - g.first_token_seconds;
  t.Set("first_token_seconds", g.first_token_seconds);
  t.Set("total_seconds", g.total_seconds);
  t.Set("prompt_tokens_per_second", g.first_token_seconds > 0 ? static_cast<double>(prompt) / g.first_token_seconds : 0.0);
  t.Set("decode_tokens_per_second", decode > 0 && g.tokens.size() > 1 ? static_cast<double>(g.tokens.size() - 1) / decode : 0.0);
  return t;
}

// Writes text as it becomes final; knows when a stop string has come.
class Stream {
 public:
  // out: where text is shown as it comes; null: nowhere.
  Stream(const TextSide& side, std::vector<std::string> stops, Output* out) : stops_(std::move(stops)), out_(out) {
    if (side.has_tokenizer()) detokenizer_.emplace(**side.tokenizer(), true);
  }
  // false: a stop string has come, or nobody can read the answer.
  bool Push(int32_t token) { return !detokenizer_ || Emit(stops_.Push(detokenizer_->Push(token))); }
  void Finish() {
    if (!detokenizer_ || stopped_) return;
    if (Emit(stops_.Push(detokenizer_->Flush()))) Emit(stops_.Flush());
  }
  const std::string& text() const { return text_; }
  bool stopped() const { return stopped_; }

 private:
  bool Emit(const std::string& piece) {
    text_ += piece;
    stopped_ = stops_.stopped();
    if (!out_) return !stopped_;
    out_->Text(piece);
    return out_->Flush() && !stopped_;
  }
  std::optional<text::StreamingDetokenizer> detokenizer_;
  text::StopStrings stops_;
  Output* out_;
  bool stopped_ = false;
  std::string text_;
};

base::Status Generate(const Options& o, Context& context) {
  HB_ASSIGN_OR_RETURN(const std::filesystem::path folder, o.model.Folder());
  HB_ASSIGN_OR_RETURN(const TextSide text, TextSide::Load(folder, o.chat_template));
  HB_ASSIGN_OR_RETURN(const std::vector<int32_t> prompt, PromptTokens(o, text));
  const SequenceNeeds needs{.prompt_tokens = static_cast<int64_t>(prompt.size()), .max_tokens = o.generation.max_tokens, .kv_cache_dtype = o.model.kv_cache_dtype};
  HB_ASSIGN_OR_RETURN(model::LoadedModel loaded, LoadWithReport(o.model, context, [&](const model::Admission& admission) -> base::Status {
    HB_RETURN_IF_ERROR(CheckTokens(admission, prompt, "the prompt"));
    return needs.Check(admission, "lower --max-tokens");
  }));
  std::vector<int32_t> eos = loaded.model->spec().eos;
  const engine::EngineOptions engine_options = needs.Engine(loaded.model->spec());
  HB_ASSIGN_OR_RETURN(auto engine, engine::Engine::Create(std::move(loaded.model), engine_options));

  engine::Request request;
  request.prompt = prompt;
  request.sampling = o.generation.Sampling();
  request.max_tokens = o.generation.max_tokens;
  Stream stream(text, o.generation.stop, context.json || !text.has_tokenizer() ? nullptr : &context.out);
  auto is_end = [&](int32_t t) { return std::find(eos.begin(), eos.end(), t) != eos.end(); };
  HB_ASSIGN_OR_RETURN(const engine::Generation g, engine->Generate(std::move(request), [&](int32_t token) { return is_end(token) || stream.Push(token); }));
  if (g.finish.error) return base::Fail(*g.finish.error);
  stream.Finish();
  const std::string_view reason = stream.stopped() ? "stop" : g.finish_reason();

  if (context.json) {
    base::Json out = base::Json::MakeObject(), prompt_json = base::Json::MakeArray(), tokens = base::Json::MakeArray();
    for (int32_t t : prompt) prompt_json.Push(t);
    for (int32_t t : g.tokens) tokens.Push(t);
    out.Set("prompt_tokens", std::move(prompt_json));
    out.Set("tokens", std::move(tokens));
    out.Set("text", text.has_tokenizer() ? base::Json(stream.text()) : base::Json());
    out.Set("finish_reason", reason);
    out.Set("timings", Timings(g, prompt.size()));
    context.out.Json(out);
    return {};
  }
  if (!text.has_tokenizer())
    for (size_t i = 0; i < g.tokens.size(); ++i) context.out.Format("%s%d", i ? "," : "", g.tokens[i]);
  context.out.Text("\n");
  HB_RETURN_IF_ERROR(context.out.Flush());  // before the line below, where both go to one terminal
  if (!context.quiet)
    std::fprintf(stderr, "%zu prompt tokens, %zu generated (%s) in %.3f s\n", prompt.size(), g.tokens.size(), std::string(reason).c_str(), g.total_seconds);
  return {};
}

}  // namespace

void RegisterGenerate(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("generate", "one completion");
  options->model.AddTo(*command);
  options->generation.AddTo(*command);
  auto* prompt = command->add_option("--prompt", options->prompt, "text to continue, or the user's message with --chat")->check(CheckNotEmpty);
  auto* file = command->add_option("--prompt-file", options->prompt_file, "the prompt from a file; - reads stdin")->check(CheckNotEmpty);
  auto* tokens = AddTokenIds(*command, "--tokens", options->tokens, "token ids 1,2,3; needs no tokenizer");
  prompt->excludes(file)->excludes(tokens);
  file->excludes(tokens);
  command->add_flag("--chat", options->chat, "put the prompt into the model's chat template")->excludes(tokens);
  command->add_option("--chat-template", options->chat_template, "a Jinja file instead of the model's own template");
  command->callback([options, prompt, file, tokens, &context] {
    if (prompt->count() + file->count() + tokens->count() == 0) throw WrongUsage("one of --prompt, --prompt-file and --tokens is needed");
    options->model.CheckUsage();
    context.command = [options, &context] { return Generate(*options, context); };
  });
}

}  // namespace halfbyte::app
