#include "text/streaming_detokenizer.h"

#include "text/tokenizer_impl.h"

namespace halfbyte::text {

struct StreamingDetokenizer::State {
  std::shared_ptr<const Tokenizer::Impl> tokenizer;
  bool skip_special_tokens;
  DecodeStream stream;
};

StreamingDetokenizer::StreamingDetokenizer(const Tokenizer& tokenizer, bool skip_special_tokens)
    : state_(new State{tokenizer.impl_, skip_special_tokens, tokenizer.impl_->decoder.Start(/*eager=*/true)}) {}
StreamingDetokenizer::~StreamingDetokenizer() = default;
StreamingDetokenizer::StreamingDetokenizer(StreamingDetokenizer&&) noexcept = default;
StreamingDetokenizer& StreamingDetokenizer::operator=(StreamingDetokenizer&&) noexcept = default;

std::string StreamingDetokenizer::Push(int32_t id) {
  auto token = state_->tokenizer->Show(id);
  if (!token || (token->special && state_->skip_special_tokens)) return {};
  state_->stream.Push(token->text);
  return state_->stream.Take();
}

std::string StreamingDetokenizer::Flush() {
  state_->stream.Finish();
  std::string text = state_->stream.Take();
  state_->stream = state_->tokenizer->decoder.Start(/*eager=*/true);
  return text;
}

}  // namespace halfbyte::text
