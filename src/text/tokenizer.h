// The tokenizer.json engine: text to token ids and back, with the very ids that Hugging Face's tokenizers library gives.
//
// tokenizer.json is executed as written (user case T20): nothing about a model family is assumed. docs/tokenizer.md lists the components;
// a file with any other is refused by name. tokenizer_config.json plays no part here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace halfbyte::text {

// Immutable after loading, every method thread-safe; copies share the same tables.
class Tokenizer {
 public:
  static base::Result<Tokenizer> FromJson(std::string_view tokenizer_json);
  static base::Result<Tokenizer> FromFolder(const std::filesystem::path& folder);  // reads folder/tokenizer.json

  // Added tokens are recognised in the text in both cases; add_special_tokens also puts those of the post-processor around it.
  // Takes any bytes: each maximal part that is not UTF-8 counts as one U+FFFD.
  std::vector<int32_t> Encode(std::string_view text, bool add_special_tokens) const;
  // Valid UTF-8 always. Ids outside the vocabulary decode to nothing.
  std::string Decode(std::span<const int32_t> ids, bool skip_special_tokens) const;

  int32_t vocab_size() const;  // highest id + 1; ids in between may be unused
  std::optional<int32_t> TokenToId(std::string_view token) const;
  std::string_view IdToToken(int32_t id) const;  // as the file writes it; empty where the id is unused
  bool IsSpecial(int32_t id) const;              // an added token with "special": true
  // The raw bytes a token stands for in the middle of a text, which may be a part of a character; empty where the id is unused.
  std::string TokenBytes(int32_t id) const;

 private:
  friend class StreamingDetokenizer;
  struct Impl;
  explicit Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace halfbyte::text
