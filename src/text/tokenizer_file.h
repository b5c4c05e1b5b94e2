// tokenizer.json, read but not yet understood: the vocabulary and the text of the merges, and everything small as JSON trees.
#pragma once

#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "text/bpe.h"

namespace halfbyte::text {

// The largest published ones have some 30 MB.
inline constexpr size_t kLargestTokenizerFile = size_t{1} << 30;

struct TokenizerFile {
  base::Json settings;    // every top-level member but "model"
  base::Json model;       // every member of "model" but "vocab" and "merges"
  Vocabulary vocabulary;
  std::string_view merges;  // JSON text, empty where there is none; lives as long as what ReadTokenizerFile was given
};

base::Result<TokenizerFile> ReadTokenizerFile(std::string_view tokenizer_json);

// Gives every merge to the model: ["a", "b"] or, as older files write them, "a b".
base::Status ReadMerges(std::string_view merges, Bpe& model);

}  // namespace halfbyte::text
