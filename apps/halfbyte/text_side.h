// What a command needs of a model besides its weights: tokenizer and chat template, each optional until asked for.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace halfbyte::app {

class TextSide {
 public:
  // A folder without tokenizer.json, or without a template, is fine: the error comes when one is used. template_file: --chat-template, may be empty.
  static base::Result<TextSide> Load(const std::filesystem::path& folder, const std::string& template_file);

  bool has_tokenizer() const { return tokenizer_.has_value(); }
  base::Result<const text::Tokenizer*> tokenizer() const;
  // Ids of a conversation, ready for the answer. The template writes the special tokens, so none are added (user case row 179).
  base::Result<std::vector<int32_t>> EncodeChat(const base::Json& messages) const;
  // Text of generated ids without a final end token; null where there is no tokenizer.
  base::Json TextOf(const std::vector<int32_t>& tokens, bool drop_last) const;

 private:
  std::filesystem::path folder_;
  std::optional<text::Tokenizer> tokenizer_;
  std::optional<text::ChatTemplate> template_;
};

// {"role": role, "content": content}
base::Json Message(std::string_view role, std::string_view content);

}  // namespace halfbyte::app
