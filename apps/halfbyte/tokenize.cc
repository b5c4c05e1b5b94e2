// halfbyte tokenize: text to token ids, with nothing but a tokenizer.json.
#include <memory>
#include <string>

#include "commands.h"
#include "jsonl.h"
#include "load_tokenizer.h"

namespace halfbyte::app {
namespace {

using base::Json;
using base::Result;

struct Options {
  std::string model = "demo", text;
  bool jsonl = false, no_special = false;
  CLI::Option* text_option = nullptr;
};

Json IdsToJson(const std::vector<int32_t>& ids) {
  Json::Array out(ids.begin(), ids.end());
  return Json(Json::Object{{"ids", Json(std::move(out))}});
}

Result<Json> TokenizeLine(const text::Tokenizer& tokenizer, const Json& line) {
  HB_ASSIGN_OR_RETURN(std::string text, line.GetString("text"));
  HB_ASSIGN_OR_RETURN(bool special, line.GetBoolOr("add_special_tokens", true));
  return IdsToJson(tokenizer.Encode(text, special));
}

base::Status Run(const Options& options, Context& context) {
  HB_ASSIGN_OR_RETURN(text::Tokenizer tokenizer, LoadTokenizer(options.model));
  if (options.jsonl) return RunJsonLines(context.out, [&](const Json& line) { return TokenizeLine(tokenizer, line); });
  std::string text = options.text;
  if (options.text_option->count() == 0) { HB_ASSIGN_OR_RETURN(text, ReadStdin()); }
  WarnOfInvalidUtf8(text, options.text_option->count() == 0 ? "stdin" : "--text");
  context.out.Json(IdsToJson(tokenizer.Encode(text, !options.no_special)));
  return {};
}

}  // namespace

void RegisterTokenize(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("tokenize", "text to token ids: {\"ids\": [...]}");
  command->add_option("--model", options->model, "folder with a tokenizer.json, org/name in the Hugging Face cache, or demo")
      ->capture_default_str();
  options->text_option = command->add_option("--text", options->text, "the text; stdin without it");
  command->add_flag("--no-special-tokens", options->no_special, "leave out the tokens that the post-processor puts around a text");
  command->add_flag("--jsonl", options->jsonl,
                    "each line of stdin is {\"text\", \"add_special_tokens\"} and gives one line {\"ids\"} or {\"error\"}")->excludes(options->text_option);
  command->callback([options, &context] { context.command = [options, &context] { return Run(*options, context); }; });
}

}  // namespace halfbyte::app
