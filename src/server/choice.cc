#include "server/choice.h"

namespace halfbyte::server {

Choice::Choice(int index, const text::Tokenizer* tokenizer, const ChoiceOptions& options)
    : index_(index), tokenizer_(tokenizer), min_tokens_(options.min_tokens), strings_(options.stop), stops_(options.stop) {
  if (tokenizer) detokenizer_.emplace(*tokenizer, options.skip_special_tokens);
}

void Choice::Release(Piece& piece, std::string text, bool all) {
  shown_ += text.size();
  piece.text += text;
  // A token goes out with the first byte of its text; one without text of its own goes with what surrounds it.
  while (!held_.empty() && (all || held_.front().offset < shown_)) {
    piece.tokens.push_back(std::move(held_.front()));
    held_.pop_front();
  }
}

Piece Choice::Push(int32_t token, std::optional<engine::PositionLogprobs> logprobs, bool end) {
  Piece piece;
  piece.index = index_;
  if (finished_) return piece;
  ++tokens_;
  if (end) {
    end_token_ = token;
    return piece;
  }
  held_.push_back({token, tokenizer_ ? tokenizer_->TokenBytes(token) : std::string(), decoded_, std::move(logprobs)});
  if (!detokenizer_) {
    Release(piece, "", true);
    return piece;
  }
  const std::string text = detokenizer_->Push(token);
  decoded_ += text.size();
  if (tokens_ < min_tokens_) {
    Release(piece, text, decoded_ == shown_ + text.size());
    return piece;
  }
  std::string shown = stops_.Push(text);
  stopped_ = stops_.stopped();
  Release(piece, std::move(shown), false);
  if (stopped_) {
    finished_ = true;
    held_.clear();
    piece.finish = "stop";
    piece.matched = strings_[static_cast<size_t>(stops_.matched())];
  }
  return piece;
}

Piece Choice::Finish(std::string_view reason) {
  Piece piece;
  piece.index = index_;
  if (finished_) return piece;
  finished_ = true;
  if (detokenizer_) {
    const std::string last = detokenizer_->Flush();
    decoded_ += last.size();
    Release(piece, stops_.Push(last), false);
    stopped_ = stops_.stopped();
    if (!stopped_) Release(piece, stops_.Flush(), true);
  }
  piece.finish = stopped_ ? "stop" : std::string(reason);
  if (stopped_) piece.matched = strings_[static_cast<size_t>(stops_.matched())];
  else if (reason == "stop") piece.matched_token = end_token_;
  return piece;
}

}  // namespace halfbyte::server
