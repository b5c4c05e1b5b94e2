// halfbyte chat: a conversation in the terminal.
#include <csignal>
#include <cstdio>
#include <memory>

#include <algorithm>
#include <unistd.h>

#include "checkpoint/model_folder.h"
#include "generation_options.h"
#include "input.h"
#include "model_options.h"
#include "text/streaming_detokenizer.h"
#include "text_side.h"

namespace halfbyte::app {
namespace {

struct Options {
  ModelOptions model;
  GenerationOptions generation;
  std::string system, chat_template;
};

volatile std::sig_atomic_t g_interrupted = 0;

// generation_config.json's sampling where the user gave no flag of their own.
void TakeModelDefaults(const checkpoint::ModelFolder& folder, const CLI::App& command, engine::SamplingParams& p) {
  auto configs = checkpoint::ReadModelConfigs(folder);
  if (!configs) return;
  const base::Json& g = configs->generation_config;
  if (!g.GetBoolOr("do_sample", true).value_or(false)) return;
  auto take = [&](const char* key, const char* flag, auto set) {
    if (command.count(flag) == 0)
      if (auto v = g.GetDoubleOr(key, -1); v && *v >= 0) set(*v);
  };
  take("temperature", "--temperature", [&](double v) { p.temperature = static_cast<float>(v); });
  take("top_p", "--top-p", [&](double v) { p.top_p = static_cast<float>(v); });
  take("top_k", "--top-k", [&](double v) { p.top_k = static_cast<int64_t>(v); });
  take("min_p", "--min-p", [&](double v) { p.min_p = static_cast<float>(v); });
}

base::Status Chat(const Options& o, const CLI::App& command, Context& context) {
  HB_ASSIGN_OR_RETURN(const std::filesystem::path path, o.model.Folder());
  HB_ASSIGN_OR_RETURN(const checkpoint::ModelFolder folder, checkpoint::ModelFolder::Open(path));
  HB_ASSIGN_OR_RETURN(const TextSide text, TextSide::Load(path, o.chat_template));
  HB_RETURN_IF_ERROR(text.EncodeChat(base::Json::Array{Message("user", "hello")}));  // a model that cannot chat says so before it loads
  HB_ASSIGN_OR_RETURN(const text::Tokenizer* tokenizer, text.tokenizer());
  HB_ASSIGN_OR_RETURN(model::LoadedModel loaded, LoadWithReport(o.model, context));
  const std::vector<int32_t> eos = loaded.model->spec().eos;
  engine::EngineOptions options;
  options.max_batch = 1;
  options.kv_dtype = KvDtype(o.model.kv_cache_dtype);
  HB_ASSIGN_OR_RETURN(auto engine, engine::Engine::Create(std::move(loaded.model), options));
  engine::SamplingParams sampling = o.generation.Sampling();
  TakeModelDefaults(folder, command, sampling);

  base::Json messages = base::Json::MakeArray();
  if (!o.system.empty()) messages.Push(Message("system", o.system));
  std::signal(SIGINT, [](int) { g_interrupted = 1; });
  // From a pipe come messages, not a person who needs to be asked for them.
  const bool ask = isatty(STDIN_FILENO) && !context.quiet;
  if (ask) std::fprintf(stderr, "type a message; /reset forgets the conversation, an empty line or Ctrl-D ends, Ctrl-C stops an answer\n");
  for (InputLines lines;;) {
    if (ask) std::fputs("> ", stderr);
    HB_ASSIGN_OR_RETURN(const std::optional<InputLines::Line> read, lines.Next());
    if (!read || (read->text.empty() && !read->too_long)) return {};
    if (read->too_long) return base::Fail(base::ErrorCode::kInvalidArgument, "a message of more than ", kTextLimit >> 20, " MiB");
    const std::string& line = read->text;
    WarnOfInvalidUtf8(line, "the message");
    if (line == "/reset") { while (messages.as_array().size() > (o.system.empty() ? 0u : 1u)) messages.as_array().pop_back(); continue; }
    messages.Push(Message("user", line));
    engine::Request request;
    HB_ASSIGN_OR_RETURN(request.prompt, text.EncodeChat(messages));
    request.sampling = sampling;
    if (command.count("--max-tokens")) request.max_tokens = o.generation.max_tokens;
    text::StreamingDetokenizer detokenizer(*tokenizer, true);
    std::string answer;
    auto show = [&](const std::string& piece) {
      answer += piece;
      context.out.Text(piece);
      return context.out.Flush().has_value();
    };
    g_interrupted = 0;
    auto g = engine->Generate(std::move(request), [&](int32_t token) {
      const bool end = std::find(eos.begin(), eos.end(), token) != eos.end();
      return (end || show(detokenizer.Push(token))) && !g_interrupted;
    });
    if (!g) { std::fprintf(stderr, "%s\n", g.error().ToString().c_str()); messages.as_array().pop_back(); continue; }
    show(detokenizer.Flush());
    context.out.Text("\n");
    HB_RETURN_IF_ERROR(context.out.Flush());
    if (g->finish.error) return base::Fail(*g->finish.error);
    messages.Push(Message("assistant", answer));
  }
}

}  // namespace

void RegisterChat(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("chat", "a conversation in the terminal");
  options->model.AddTo(*command);
  options->generation.AddTo(*command);
  command->add_option("--system", options->system, "system message");
  command->add_option("--chat-template", options->chat_template, "a Jinja file instead of the model's own template");
  command->callback([options, command, &context] {
    options->model.CheckUsage();
    context.command = [options, command, &context] { return Chat(*options, *command, context); };
  });
}

}  // namespace halfbyte::app
