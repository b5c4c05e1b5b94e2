// halfbyte template: a conversation to the text that the model reads, or with --jinja any template with any variables.
#include <memory>
#include <string>

#include "checkpoint/model_folder.h"
#include "commands.h"
#include "jsonl.h"
#include "text/chat_template.h"

namespace halfbyte::app {
namespace {

using base::ErrorCode;
using base::Fail;
using base::Json;
using base::Result;

struct Options {
  std::string model = "demo", chat_template;
  bool jsonl = false, jinja = false;
};

Json Rendered(std::string text) { return Json(Json::Object{{"rendered", Json(std::move(text))}}); }

Result<Json> RenderChat(const text::ChatTemplate& chat, const Json& line) {
  const Json* messages = line.Find("messages");
  if (messages == nullptr || !messages->is_array()) return Fail(ErrorCode::kInvalidArgument, "\"messages\" must be a list");
  HB_ASSIGN_OR_RETURN(bool prompt, line.GetBoolOr("add_generation_prompt", false));
  const Json* tools = line.Find("tools");
  if (tools != nullptr && !tools->is_null() && !tools->is_array()) return Fail(ErrorCode::kInvalidArgument, "\"tools\" must be a list");
  const Json* extra = line.Find("extra");
  if (extra != nullptr && !extra->is_null() && !extra->is_object()) return Fail(ErrorCode::kInvalidArgument, "\"extra\" must be an object");
  HB_ASSIGN_OR_RETURN(std::string text, chat.Render(*messages, tools != nullptr ? *tools : Json(), prompt,
                                                    extra != nullptr ? *extra : Json()));
  return Rendered(std::move(text));
}

Result<Json> RenderJinja(const Json& line) {
  HB_ASSIGN_OR_RETURN(std::string source, line.GetString("template"));
  HB_ASSIGN_OR_RETURN(std::string now, line.GetStringOr("now", ""));
  text::JinjaRenderOptions options;
  if (!now.empty()) { HB_ASSIGN_OR_RETURN(options.now, text::JinjaTime::Parse(now)); }
  const Json* context = line.Find("context");
  if (context != nullptr && !context->is_object()) return Fail(ErrorCode::kInvalidArgument, "\"context\" must be an object");
  HB_ASSIGN_OR_RETURN(text::JinjaTemplate parsed, text::JinjaTemplate::Parse(std::move(source)));
  HB_ASSIGN_OR_RETURN(std::string text, parsed.Render(context != nullptr ? *context : Json::MakeObject(), options));
  return Rendered(std::move(text));
}

Result<text::ChatTemplate> LoadChatTemplate(const Options& options) {
  HB_ASSIGN_OR_RETURN(std::filesystem::path folder, checkpoint::ResolveModelFolder(options.model));
  if (!options.chat_template.empty()) return text::ChatTemplate::FromFile(options.chat_template, folder);
  HB_ASSIGN_OR_RETURN(std::optional<text::ChatTemplate> chat, text::ChatTemplate::FromFolder(folder));
  if (!chat) {
    return Fail(base::Error(ErrorCode::kNotFound, folder.string() + " has no chat template")
                    .Hint("give one with --chat-template FILE"));
  }
  return std::move(*chat);
}

// Every line, or all of stdin as one object whose text is printed as it is.
base::Status ForInput(bool jsonl, Output& out, const std::function<Result<Json>(const Json&)>& render) {
  if (jsonl) return RunJsonLines(out, render);
  HB_ASSIGN_OR_RETURN(std::string text, ReadStdin());
  HB_ASSIGN_OR_RETURN_AT(Json input, Json::Parse(text), "stdin");
  if (!input.is_object()) return Fail(ErrorCode::kInvalidArgument, "stdin must be a JSON object");
  HB_ASSIGN_OR_RETURN(Json answer, render(input));
  out.Text(answer.Find("rendered")->as_string());
  return {};
}

base::Status Run(const Options& options, Context& context) {
  if (options.jinja) return ForInput(options.jsonl, context.out, RenderJinja);
  HB_ASSIGN_OR_RETURN(text::ChatTemplate chat, LoadChatTemplate(options));
  return ForInput(options.jsonl, context.out, [&](const Json& line) { return RenderChat(chat, line); });
}

}  // namespace

void RegisterTemplate(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand(
      "template", "a conversation to text: stdin is {\"messages\", \"tools\", \"add_generation_prompt\", \"extra\"}");
  command->add_option("--model", options->model, "folder with a chat template, org/name in the Hugging Face cache, or demo")
      ->capture_default_str();
  command->add_option("--chat-template", options->chat_template, "a template file instead of the model's own");
  command->add_flag("--jsonl", options->jsonl,
                    "each line of stdin is such an object and gives one line {\"rendered\"} or {\"error\"}");
  command->add_flag("--jinja", options->jinja, "the input is {\"template\", \"context\", \"now\"}, no model is needed");
  command->callback([options, &context] { context.command = [options, &context] { return Run(*options, context); }; });
}

}  // namespace halfbyte::app
