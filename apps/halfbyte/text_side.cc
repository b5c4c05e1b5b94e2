#include "text_side.h"

namespace halfbyte::app {

base::Result<TextSide> TextSide::Load(const std::filesystem::path& folder, const std::string& template_file) {
  TextSide side;
  side.folder_ = folder;
  std::error_code error;
  if (std::filesystem::exists(folder / "tokenizer.json", error)) {
    HB_ASSIGN_OR_RETURN(side.tokenizer_, text::Tokenizer::FromFolder(folder));
  }
  if (template_file.empty()) {
    HB_ASSIGN_OR_RETURN(side.template_, text::ChatTemplate::FromFolder(folder));
  } else {
    HB_ASSIGN_OR_RETURN(side.template_, text::ChatTemplate::FromFile(template_file, folder));
  }
  return side;
}

base::Result<const text::Tokenizer*> TextSide::tokenizer() const {
  if (!tokenizer_)
    return base::Fail(base::Error(base::ErrorCode::kNotFound, base::StrCat(folder_.string(), " has no tokenizer.json")).Hint("give token ids with --tokens"));
  return &*tokenizer_;
}

base::Result<std::vector<int32_t>> TextSide::EncodeChat(const base::Json& messages) const {
  HB_ASSIGN_OR_RETURN(const text::Tokenizer* tokenizer, this->tokenizer());
  if (!template_)
    return base::Fail(base::Error(base::ErrorCode::kNotFound, base::StrCat(folder_.string(), " has no chat template")).Hint("give one with --chat-template FILE"));
  HB_ASSIGN_OR_RETURN(const std::string prompt, template_->Render(messages, base::Json(), true, base::Json::MakeObject()));
  return tokenizer->Encode(prompt, false);
}

base::Json TextSide::TextOf(const std::vector<int32_t>& tokens, bool drop_last) const {
  if (!tokenizer_) return {};
  const size_t n = tokens.size() - (drop_last && !tokens.empty());
  return tokenizer_->Decode({tokens.data(), n}, true);
}

base::Json Message(std::string_view role, std::string_view content) {
  base::Json m = base::Json::MakeObject();
  m.Set("role", role);
  m.Set("content", content);
  return m;
}

}  // namespace halfbyte::app
