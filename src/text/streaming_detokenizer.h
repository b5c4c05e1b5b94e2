// Turns token ids into text one by one, as they are generated.
#pragma once

#include <cstdint>
#include <string>

#include "text/tokenizer.h"

namespace halfbyte::text {

// All that Push and Flush return, joined, is the text that Tokenizer::Decode gives for the same ids. There is one exception, in models
// with byte fallback: bytes that turn out not to be UTF-8 after complete characters (decoder_steps.cc says why).
class StreamingDetokenizer {
 public:
  StreamingDetokenizer(const Tokenizer& tokenizer, bool skip_special_tokens);
  ~StreamingDetokenizer();
  StreamingDetokenizer(StreamingDetokenizer&&) noexcept;
  StreamingDetokenizer& operator=(StreamingDetokenizer&&) noexcept;

  // The text that is certain now: whole characters, often none and never a broken one. Ids outside the vocabulary give nothing.
  std::string Push(int32_t id);
  // What was waiting; bytes that never became a character are U+FFFD. Afterwards a new text starts.
  std::string Flush();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace halfbyte::text
