// halfbyte detokenize: token ids to text, with nothing but a tokenizer.json.
#include <cstdio>
#include <memory>
#include <string>

#include "commands.h"
#include "jsonl.h"
#include "load_tokenizer.h"

namespace halfbyte::app {
namespace {

using base::ErrorCode;
using base::Fail;
using base::Json;
using base::Result;

struct Options {
  std::string model = "demo", ids;
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

base::Status Run(const Options& options, bool json) {
  HB_ASSIGN_OR_RETURN(text::Tokenizer tokenizer, LoadTokenizer(options.model));
  if (options.jsonl) return RunJsonLines([&](const Json& line) { return DetokenizeLine(tokenizer, line); });
  std::string text = options.ids;
  if (options.ids_option->count() == 0) { HB_ASSIGN_OR_RETURN(text, ReadStdin()); }
  // "1,2,3" as for generate --tokens, "[1, 2, 3]", or what tokenize prints.
  if (size_t first = text.find_first_not_of(" \t\r\n"); first == text.npos || (text[first] != '[' && text[first] != '{'))
    text = base::StrCat("[", text, "]");
  HB_ASSIGN_OR_RETURN_AT(Json parsed, Json::Parse(text), "--ids");
  HB_ASSIGN_OR_RETURN(std::vector<int32_t> ids, IdsFromJson(parsed.is_object() ? parsed.Find("ids") : &parsed));
  std::string decoded = tokenizer.Decode(ids, options.skip_special);
  if (json) decoded = Json(Json::Object{{"text", Json(std::move(decoded))}}).Dump();
  std::fwrite(decoded.data(), 1, decoded.size(), stdout);
  std::fputc('\n', stdout);
  return {};
}

}  // namespace

void RegisterDetokenize(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("detokenize", "token ids to text");
  command->add_option("--model", options->model, "folder with a tokenizer.json, org/name in the Hugging Face cache, or demo")
      ->capture_default_str();
  options->ids_option = command->add_option("--ids", options->ids, "1,2,3 or [1, 2, 3]; stdin without it");
  command->add_flag("--skip-special-tokens", options->skip_special, "leave out special tokens");
  command->add_flag("--jsonl", options->jsonl,
                    "each line of stdin is {\"ids\", \"skip_special_tokens\"} and gives one line {\"text\"} or {\"error\"}");
  command->callback([options, &context] { context.command = [options, &context] { return Run(*options, context.json); }; });
}

}  // namespace halfbyte::app
