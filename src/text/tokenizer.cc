#include "text/tokenizer.h"

#include <fstream>

#include "base/json.h"
#include "base/log.h"
#include "text/tokenizer_file.h"
#include "text/tokenizer_impl.h"
#include "text/unicode.h"

namespace halfbyte::text {

using base::ErrorCode;
using base::Fail;
using base::Json;
using base::Result;
using base::Status;

namespace {

Result<Bpe::Options> ReadModelOptions(const Json& model) {
  Bpe::Options options;
  HB_ASSIGN_OR_RETURN(options.unknown, model.GetStringOr("unk_token", ""));
  HB_ASSIGN_OR_RETURN(options.continuing_subword_prefix, model.GetStringOr("continuing_subword_prefix", ""));
  HB_ASSIGN_OR_RETURN(options.end_of_word_suffix, model.GetStringOr("end_of_word_suffix", ""));
  HB_ASSIGN_OR_RETURN(options.fuse_unknown, model.GetBoolOr("fuse_unk", false));
  HB_ASSIGN_OR_RETURN(options.byte_fallback, model.GetBoolOr("byte_fallback", false));
  HB_ASSIGN_OR_RETURN(options.ignore_merges, model.GetBoolOr("ignore_merges", false));
  HB_ASSIGN_OR_RETURN(double dropout, model.GetDoubleOr("dropout", 0));
  if (dropout != 0) base::LogWarning("tokenizer.json: \"dropout\" is for training and is not applied");
  return options;
}

Result<std::string> ReadFile(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return Fail(ErrorCode::kNotFound, path.string(), ": there is no such file");
  // Opening a FIFO would wait for ever.
  if (!std::filesystem::is_regular_file(path, error)) return Fail(ErrorCode::kBadFile, path.string(), ": not a regular file");
  std::ifstream in(path, std::ios::binary);
  const uintmax_t size = std::filesystem::file_size(path, error);
  if (!error && size > kLargestTokenizerFile) return Fail(ErrorCode::kBadFile, path.string(), ": ", size, " bytes, at most ", kLargestTokenizerFile, " are read");
  std::string text(error ? 0 : static_cast<size_t>(size), '\0');
  if (!in || error || !in.read(text.data(), static_cast<std::streamsize>(text.size())))
    return Fail(ErrorCode::kIo, path.string(), ": cannot be read");
  return text;
}

}  // namespace

std::optional<Tokenizer::Impl::Shown> Tokenizer::Impl::Show(int32_t id) const {
  if (const AddedToken* token = added.Find(id)) return Shown{token->shown, token->special};
  if (!model.vocabulary().Has(id)) return std::nullopt;
  return Shown{model.vocabulary().Token(id), false};
}

std::unique_ptr<BpeScratch> Tokenizer::Impl::Borrow() const {
  std::lock_guard lock(mutex);
  if (idle.empty()) return std::make_unique<BpeScratch>();
  auto scratch = std::move(idle.back());
  idle.pop_back();
  return scratch;
}
void Tokenizer::Impl::Return(std::unique_ptr<BpeScratch> scratch) const {
  std::lock_guard lock(mutex);
  idle.push_back(std::move(scratch));
}

Result<Tokenizer> Tokenizer::FromJson(std::string_view tokenizer_json) {
  HB_ASSIGN_OR_RETURN(TokenizerFile file, ReadTokenizerFile(tokenizer_json));
  auto impl = std::make_shared<Impl>();
  HB_ASSIGN_OR_RETURN(impl->normalizer, Normalizer::FromJson(file.settings.Find("normalizer")));
  HB_ASSIGN_OR_RETURN(impl->pre_tokenizer, PreTokenizer::FromJson(file.settings.Find("pre_tokenizer")));
  HB_ASSIGN_OR_RETURN(impl->post_processor, PostProcessor::FromJson(file.settings.Find("post_processor")));
  HB_ASSIGN_OR_RETURN(impl->decoder, Decoder::FromJson(file.settings.Find("decoder")));
  HB_ASSIGN_OR_RETURN(impl->added, AddedTokens::FromJson(file.settings.Find("added_tokens"), file.vocabulary, impl->normalizer));
  for (const char* key : {"truncation", "padding"}) {
    const Json* value = file.settings.Find(key);
    if (value != nullptr && !value->is_null())
      base::LogDebug("tokenizer.json: \"", key, "\" is for batches in training and is not applied");
  }

  HB_ASSIGN_OR_RETURN_AT(Bpe::Options options, ReadModelOptions(file.model), "\"model\"");
  options.bytes = impl->pre_tokenizer.gives_bytes();
  if (!options.unknown.empty()) {
    options.unknown_id = file.vocabulary.Find(options.unknown);
    const AddedToken* token = impl->added.Find(options.unknown);
    if (options.unknown_id < 0 && token != nullptr) options.unknown_id = token->id;
    if (options.unknown_id < 0)
      base::LogWarning("tokenizer.json: the unk_token ", options.unknown, " is no token; unknown characters are left out");
  }
  impl->model = Bpe(std::move(file.vocabulary), std::move(options));
  if (auto status = ReadMerges(file.merges, impl->model); !status) return Fail(std::move(status).error().At("\"merges\""));
  return Tokenizer(std::move(impl));
}

Result<Tokenizer> Tokenizer::FromFolder(const std::filesystem::path& folder) {
  std::filesystem::path path = folder / "tokenizer.json";
  HB_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  HB_ASSIGN_OR_RETURN_AT(Tokenizer tokenizer, FromJson(text), path.string());
  return tokenizer;
}

std::vector<int32_t> Tokenizer::Encode(std::string_view text, bool add_special_tokens) const {
  std::string repaired, normalized;
  if (!IsValidUtf8(text)) {
    repaired = ReplaceInvalidUtf8(text);
    text = repaired;
  }
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 4 + 8);
  std::unique_ptr<BpeScratch> scratch = impl_->Borrow();
  auto encode_piece = [&](Piece piece) { impl_->model.Encode(piece.text, *scratch, ids); };
  impl_->added.Split(text, /*normalized=*/false, [&](size_t begin, size_t end, const AddedToken* token) {
    if (token != nullptr) { ids.push_back(token->id); return; }
    std::string_view part = impl_->normalizer.Apply(text.substr(begin, end - begin), normalized);
    impl_->added.Split(part, /*normalized=*/true, [&](size_t inner, size_t inner_end, const AddedToken* inner_token) {
      if (inner_token != nullptr) { ids.push_back(inner_token->id); return; }
      impl_->pre_tokenizer.Run({part.substr(inner, inner_end - inner), begin == 0 && inner == 0}, encode_piece);
    });
  });
  impl_->Return(std::move(scratch));
  if (add_special_tokens) impl_->post_processor.Apply(ids);
  return ids;
}

std::string Tokenizer::Decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  DecodeStream stream = impl_->decoder.Start(/*eager=*/false);
  for (int32_t id : ids) {
    auto token = impl_->Show(id);
    if (token && !(token->special && skip_special_tokens)) stream.Push(token->text);
  }
  stream.Finish();
  return stream.Take();
}

int32_t Tokenizer::vocab_size() const { return std::max(impl_->model.vocabulary().size(), impl_->added.size()); }

std::optional<int32_t> Tokenizer::TokenToId(std::string_view token) const {
  if (const AddedToken* added = impl_->added.Find(token)) return added->id;
  int32_t id = impl_->model.vocabulary().Find(token);
  return id < 0 ? std::nullopt : std::optional(id);
}

std::string_view Tokenizer::IdToToken(int32_t id) const {
  auto token = impl_->Show(id);
  return token ? token->text : std::string_view();
}

bool Tokenizer::IsSpecial(int32_t id) const {
  const AddedToken* token = impl_->added.Find(id);
  return token != nullptr && token->special;
}

std::string Tokenizer::TokenBytes(int32_t id) const {
  auto token = impl_->Show(id);
  return token ? impl_->decoder.TokenBytes(token->text) : std::string();
}

}  // namespace halfbyte::text
