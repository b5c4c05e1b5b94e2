// Choice: turns one sequence's tokens into pieces of text that may be shown: whole characters, nothing of a stop string (user case T17), each token with
// the piece in which its text begins.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "engine/request.h"
#include "text/stop_strings.h"
#include "text/streaming_detokenizer.h"

namespace halfbyte::server {

struct OutputToken {
  int32_t id = 0;
  std::string bytes;      // raw; may be a part of a character
  size_t offset = 0;      // byte of the answer's text where its text begins
  std::optional<engine::PositionLogprobs> logprobs;
};

struct Piece {
  int index = 0;
  std::string text;
  std::vector<OutputToken> tokens;
  std::optional<std::string> finish;       // "stop", "length", "abort" with the last piece
  std::string matched;                     // the stop string that ended it
  std::optional<int32_t> matched_token;    // the end token that ended it
  bool empty() const { return text.empty() && tokens.empty() && !finish; }
};

struct ChoiceOptions {
  std::vector<std::string> stop;
  bool skip_special_tokens = true;
  int64_t min_tokens = 0;  // stop strings do not count before
};

class Choice {
 public:
  // Without a tokenizer tokens have no text.
  Choice(int index, const text::Tokenizer* tokenizer, const ChoiceOptions& options);

  // Takes one token; `end`: it is an end token, which has no text.
  Piece Push(int32_t token, std::optional<engine::PositionLogprobs> logprobs, bool end);
  // The answer ended for this reason; only where no stop string has ended it.
  Piece Finish(std::string_view reason);

  bool stopped() const { return stopped_; }   // by a stop string
  bool finished() const { return finished_; }
  int64_t tokens() const { return tokens_; }

 private:
  void Release(Piece& piece, std::string text, bool all);

  const int index_;
  const text::Tokenizer* tokenizer_;
  const int64_t min_tokens_;
  std::vector<std::string> strings_;
  std::optional<text::StreamingDetokenizer> detokenizer_;
  text::StopStrings stops_;
  std::deque<OutputToken> held_;
  std::optional<int32_t> end_token_;
  size_t decoded_ = 0, shown_ = 0;
  int64_t tokens_ = 0;
  bool stopped_ = false, finished_ = false;
};

}  // namespace halfbyte::server
