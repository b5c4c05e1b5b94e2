#include "jsonl.h"

#include <cstdio>
#include <iostream>
#include <iterator>
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

base::Status RunJsonLines(const std::function<Result<Json>(const Json& line)>& handler) {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    Result<Json> result = Json::Parse(line);
    if (result && !result->is_object()) result = Fail(ErrorCode::kInvalidArgument, "a line must be a JSON object");
    if (result) result = handler(*result);
    Json answer = result ? std::move(*result) : Json(Json::Object{{"error", Json(result.error().ToString())}});
    std::cout << OneLine(answer.Dump()) << '\n';
    // Whoever talks to the command line by line waits for each answer.
    if (std::cin.rdbuf()->in_avail() <= 0) std::cout.flush();
  }
  std::cout.flush();
  if (std::cin.bad()) return Fail(ErrorCode::kIo, "stdin cannot be read");
  if (!std::cout) return Fail(ErrorCode::kIo, "stdout cannot be written");
  return {};
}

Result<std::string> ReadStdin() {
  std::string text{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  if (std::cin.bad()) return Fail(ErrorCode::kIo, "stdin cannot be read");
  return text;
}

}  // namespace halfbyte::app
