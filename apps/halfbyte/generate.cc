// halfbyte generate: one completion.
#include <chrono>
#include <cstdio>
#include <memory>

#include "eval_documents.h"
#include "generation_options.h"
#include "model_options.h"
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
  return ReadFile(o.prompt_file);
}

base::Result<std::vector<int32_t>> PromptTokens(const Options& o, const TextSide& text) {
  if (!o.tokens.empty()) return o.tokens;
  HB_ASSIGN_OR_RETURN(const std::string prompt, PromptText(o));
  if (prompt.empty()) return base::Fail(base::ErrorCode::kInvalidArgument, "usage: one of --prompt, --prompt-file and --tokens is needed");
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
  Stream(const TextSide& side, std::vector<std::string> stops, bool print) : stops_(std::move(stops)), print_(print) {
    if (side.has_tokenizer()) detokenizer_.emplace(**side.tokenizer(), true);
  }
  // false: a stop string has come.
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
    if (print_) { std::fwrite(piece.data(), 1, piece.size(), stdout); std::fflush(stdout); }
    stopped_ = stops_.stopped();
    return !stopped_;
  }
  std::optional<text::StreamingDetokenizer> detokenizer_;
  text::StopStrings stops_;
  bool print_, stopped_ = false;
  std::string text_;
};

base::Status Generate(const Options& o, const Context& context) {
  HB_ASSIGN_OR_RETURN(const std::filesystem::path folder, o.model.Folder());
  HB_ASSIGN_OR_RETURN(const TextSide text, TextSide::Load(folder, o.chat_template));
  HB_ASSIGN_OR_RETURN(const std::vector<int32_t> prompt, PromptTokens(o, text));
  HB_ASSIGN_OR_RETURN(model::LoadedModel loaded, LoadWithReport(o.model, context));
  std::vector<int32_t> eos = loaded.model->spec().eos;
  HB_ASSIGN_OR_RETURN(engine::EngineOptions engine_options, SingleSequence(o.model.kv_cache_dtype, static_cast<int64_t>(prompt.size()) + o.generation.max_tokens));
  HB_ASSIGN_OR_RETURN(auto engine, engine::Engine::Create(std::move(loaded.model), engine_options));

  engine::Request request;
  request.prompt = prompt;
  request.sampling = o.generation.Sampling();
  request.max_tokens = o.generation.max_tokens;
  Stream stream(text, o.generation.stop, !context.json && text.has_tokenizer());
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
    std::printf("%s\n", out.Dump().c_str());
    return {};
  }
  if (!text.has_tokenizer())
    for (size_t i = 0; i < g.tokens.size(); ++i) std::printf("%s%d", i ? "," : "", g.tokens[i]);
  std::printf("\n");
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
  auto* prompt = command->add_option("--prompt", options->prompt, "text to continue, or the user's message with --chat");
  auto* file = command->add_option("--prompt-file", options->prompt_file, "the prompt from a file");
  auto* tokens = command->add_option("--tokens", options->tokens, "token ids 1,2,3; needs no tokenizer")->delimiter(',');
  prompt->excludes(file)->excludes(tokens);
  file->excludes(tokens);
  command->add_flag("--chat", options->chat, "put the prompt into the model's chat template")->excludes(tokens);
  command->add_option("--chat-template", options->chat_template, "a Jinja file instead of the model's own template");
  command->callback([options, &context] { context.command = [options, &context] { return Generate(*options, context); }; });
}

}  // namespace halfbyte::app
