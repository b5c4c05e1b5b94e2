// halfbyte detokenize: token ids to text, with nothing but a tokenizer.json.
#include <algorithm>
#include <memory>
#include <string>

#include "commands.h"
#include "jsonl.h"
#include "load_tokenizer.h"
#include "options.h"

namespace halfbyte::app {
namespace {

using base::ErrorCode;
using base::Fail;
using base::Json;
using base::Result;

struct Options {
  std::string model = "demo";
  std::vector<int32_t> ids;
  bool jsonl = false, skip_special = false;
  CLI::Option* ids_option = nullptr;
};

Result<std::vector<int32_t>> IdsFromJson(const Json* json) {
  if (json == nullptr || !json->is_array()) return Fail(ErrorCode::kInvalidArgument, "\"ids\" must be a list of token ids");
  std::vector<int32_t> ids;
  for (const Json& id : json->as_array()) {
    if (!id.is_int() || id.as_int() < 0 || id.as_int() > INT32_MAX)
      return Fail(ErrorCode::kInvalidArgument, "\"ids\": ", id.Dump(), " is no token id");
    ids.push_back(static_cast<int32_t>(id.as_int()));
  }
  return ids;
}

Result<Json> DetokenizeLine(const text::Tokenizer& tokenizer, const Json& line) {
  HB_ASSIGN_OR_RETURN(std::vector<int32_t> ids, IdsFromJson(line.Find("ids")));
  HB_ASSIGN_OR_RETURN(bool skip, line.GetBoolOr("skip_special_tokens", true));
  return Json(Json::Object{{"text", Json(tokenizer.Decode(ids, skip))}});
}

// "1,2,3" as for generate --tokens, "[1, 2, 3]", or what tokenize prints; spaces and line ends around it come with a pipe.
Result<std::vector<int32_t>> IdsFromText(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  text = text.substr(0, text.find_last_not_of(kSpace) + 1);
  if (text.empty() || (text.front() != '[' && text.front() != '{')) return ParseTokenIds(text);
  HB_ASSIGN_OR_RETURN(const Json parsed, Json::Parse(text));
  return IdsFromJson(parsed.is_object() ? parsed.Find("ids") : &parsed);
}

base::Status Run(const Options& options, Context& context) {
  HB_ASSIGN_OR_RETURN(text::Tokenizer tokenizer, LoadTokenizer(options.model));
  if (options.jsonl) return RunJsonLines(context.out, [&](const Json& line) { return DetokenizeLine(tokenizer, line); });
  std::vector<int32_t> ids = options.ids;
  if (options.ids_option->count() == 0) {
    HB_ASSIGN_OR_RETURN(const std::string text, ReadStdin());
    HB_ASSIGN_OR_RETURN_AT(ids, IdsFromText(text), "stdin");
  }
  std::string decoded = tokenizer.Decode(ids, options.skip_special);
  if (context.json) context.out.Json(Json(Json::Object{{"text", Json(std::move(decoded))}}));
  else context.out.Line(decoded);
  return {};
}

}  // namespace

void RegisterDetokenize(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("detokenize", "token ids to text");
  command->add_option("--model", options->model, "folder with a tokenizer.json, org/name in the Hugging Face cache, or demo")
      ->capture_default_str();
  options->ids_option = command->add_option_function<std::string>("--ids", [options](const std::string& text) {
    auto ids = IdsFromText(text);
    if (!ids) throw CLI::ValidationError("--ids", ids.error().ToString());
    options->ids = std::move(*ids);
  }, "1,2,3 or [1, 2, 3]; stdin without it");
  command->add_flag("--skip-special-tokens", options->skip_special, "leave out special tokens");
  command->add_flag("--jsonl", options->jsonl,
                    "each line of stdin is {\"ids\", \"skip_special_tokens\"} and gives one line {\"text\"} or {\"error\"}")->excludes(options->ids_option);
  command->callback([options, &context] { context.command = [options, &context] { return Run(*options, context); }; });
}

}  // namespace halfbyte::app
