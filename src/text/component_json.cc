#include "text/component_json.h"

#include "text/unicode.h"

namespace halfbyte::text {

using base::ErrorCode;
using base::Fail;
using base::Json;

base::Result<std::string> ComponentType(const Json& json, int depth) {
  constexpr int kDeepest = 16;
  if (depth > kDeepest) return Fail(ErrorCode::kBadFile, "sequences nested deeper than ", kDeepest);
  if (!json.is_object()) return Fail(ErrorCode::kBadFile, "an object is wanted, not ", json.type_name());
  return json.GetString("type");
}

tl::unexpected<base::Error> UnknownComponent(std::string_view kind, std::string_view type) {
  return Fail(base::Error(ErrorCode::kUnsupported, base::StrCat("the ", kind, " ", type, " is not supported"))
                  .Hint("docs/tokenizer.md lists what is"));
}

base::Result<SplitPattern> PatternFromJson(const Json& json) {
  const Json* pattern = json.Find("pattern");
  if (pattern == nullptr) return Fail(ErrorCode::kBadFile, "\"pattern\" is missing");
  if (const Json* text = pattern->Find("String"); text != nullptr && text->is_string())
    return SplitPattern::FromLiteral(text->as_string());
  if (const Json* text = pattern->Find("Regex"); text != nullptr && text->is_string())
    return SplitPattern::FromRegex(text->as_string());
  return Fail(ErrorCode::kBadFile, "\"pattern\" must be {\"String\": text} or {\"Regex\": text}");
}

base::Result<char32_t> CharacterFromJson(const Json& json, std::string_view key, char32_t otherwise) {
  HB_ASSIGN_OR_RETURN(std::string text, json.GetStringOr(key, ""));
  if (text.empty()) return otherwise;
  Utf8Step step = StepUtf8(text);
  if (step.kind != Utf8Step::kCharacter || step.size != text.size())
    return Fail(ErrorCode::kBadFile, "\"", key, "\" must be one character");
  return DecodeValid(text.data()).code;
}

}  // namespace halfbyte::text
