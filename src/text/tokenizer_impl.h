// What a Tokenizer is made of; for tokenizer.cc and streaming_detokenizer.cc only.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/decoder.h"
#include "text/normalizer.h"
#include "text/post_processor.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer.h"

namespace halfbyte::text {

struct Tokenizer::Impl {
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Bpe model;
  AddedTokens added;
  PostProcessor post_processor;
  Decoder decoder;

  // The text of a token and whether skip_special_tokens leaves it out; nullopt for an unused id.
  struct Shown { std::string_view text; bool special; };
  std::optional<Shown> Show(int32_t id) const;

  // Working memory with its cache of words: one for each call that runs at the same time, kept for the next.
  std::unique_ptr<BpeScratch> Borrow() const;
  void Return(std::unique_ptr<BpeScratch> scratch) const;
  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<BpeScratch>> idle;
};

}  // namespace halfbyte::text
