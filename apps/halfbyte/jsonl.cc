#include "jsonl.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace halfbyte::app {
namespace {

// U+0085, U+2028 and U+2029 end a line for some readers (Python's splitlines); JSON lets them stand in strings, and only there.
std::string OneLine(std::string json) {
  for (auto [character, escape] : {std::pair("\u0085", "\\u0085"), {"\u2028", "\\u2028"}, {"\u2029", "\\u2029"}}) {
    std::string_view from = character;
    for (size_t at = json.find(from); at != json.npos; at = json.find(from, at)) json.replace(at, from.size(), escape);
  }
  return json;
}

}  // namespace

using base::ErrorCode;
using base::Fail;
using base::Json;
using base::Result;

base::Status RunJsonLines(Output& out, const std::function<Result<Json>(const Json& line)>& handler) {
  InputLines lines;
  for (;;) {
    HB_ASSIGN_OR_RETURN(const std::optional<InputLines::Line> line, lines.Next());
    if (!line) return {};
    Result<Json> result = line->too_long ? Fail(ErrorCode::kInvalidArgument, "a line of more than ", kTextLimit >> 20, " MiB") : Json::Parse(line->text);
    if (result && !result->is_object()) result = Fail(ErrorCode::kInvalidArgument, "a line must be a JSON object");
    if (result) result = handler(*result);
    const Json answer = result ? std::move(*result) : Json(Json::Object{{"error", Json(result.error().ToString())}});
    out.Line(OneLine(answer.Dump()));
    if (!lines.HasLine()) HB_RETURN_IF_ERROR(out.Flush());
  }
}

}  // namespace halfbyte::app
