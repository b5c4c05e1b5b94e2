// Where the tests of src/text find their data: the reference beside the checkout, else the small copies under tests/data/text.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "text/tokenizer.h"

namespace halfbyte::text {

inline const std::filesystem::path kShared = std::filesystem::path(HALFBYTE_SOURCE_DIR) / "../shared";

inline std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// The rows of a .jsonl file of the reference; empty where neither place has it.
inline std::vector<base::Json> ReferenceRows(const std::string& name) {
  std::filesystem::path path = kShared / "reference/text" / name;
  if (!std::filesystem::exists(path)) path = std::filesystem::path(HALFBYTE_TEST_DATA) / "text" / name;
  std::vector<base::Json> rows;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) rows.push_back(base::Json::Parse(line).value());
  return rows;
}

// The text of a tokenizer.json: "demo" is the project's own, the others are there where the reference data is.
inline std::optional<std::string> TokenizerJson(const std::string& name) {
  if (name == "demo") return ReadAll(std::filesystem::path(HALFBYTE_SOURCE_DIR) / "models/demo/tokenizer.json");
  std::filesystem::path path = kShared / "tokenizers" / name / "tokenizer.json.gz";
  if (!std::filesystem::exists(path)) return std::nullopt;
  FILE* pipe = popen(("gzip -dc '" + path.string() + "'").c_str(), "r");
  std::string text;
  char buffer[1 << 16];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
  return pclose(pipe) == 0 ? std::optional(text) : std::nullopt;
}

inline std::vector<int32_t> Ids(const base::Json& array) {
  std::vector<int32_t> ids;
  for (const base::Json& id : array.as_array()) ids.push_back(static_cast<int32_t>(id.as_int()));
  return ids;
}

// A tokenizer.json over the 256 bytes (ids 0 to 255) with merges from 256 on, as in user case T20. Parts are JSON texts.
struct ByteTokenizer {
  std::vector<std::pair<std::string, std::string>> merges;
  std::string pre_tokenizer = R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false})";
  std::string normalizer = "null", added_tokens = "[]";
  std::vector<std::pair<std::string, int32_t>> more;  // further tokens of the vocabulary, as bytes

  std::string Json() const;
  Tokenizer Build() const { return Tokenizer::FromJson(Json()).value(); }
};

}  // namespace halfbyte::text
