#include "load_tokenizer.h"

#include "checkpoint/model_folder.h"

namespace halfbyte::app {

base::Result<text::Tokenizer> LoadTokenizer(const std::string& model) {
  HB_ASSIGN_OR_RETURN(std::filesystem::path path, checkpoint::ResolveModelFolder(model));
  HB_ASSIGN_OR_RETURN(checkpoint::ModelFolder folder, checkpoint::ModelFolder::Open(path));
  constexpr std::string_view kName = "tokenizer.json";
  if (!folder.Has(kName)) {
    return base::Fail(
        base::Error(base::ErrorCode::kNotFound, base::StrCat(path.string(), " has no tokenizer.json"))
            .Hint("other tokenizer files, as tokenizer.model, are not read; transformers' save_pretrained writes one"));
  }
  HB_ASSIGN_OR_RETURN_AT(std::string json, folder.ReadText(kName, uint64_t{1} << 30), path.string());
  HB_ASSIGN_OR_RETURN_AT(text::Tokenizer tokenizer, text::Tokenizer::FromJson(json), (path / kName).string());
  return tokenizer;
}

}  // namespace halfbyte::app
