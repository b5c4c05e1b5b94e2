// The "post_processor" of a tokenizer.json: the special tokens put around an encoded text ("add_special_tokens").
#pragma once

#include <cstdint>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace halfbyte::text {

// Sequence, TemplateProcessing, BertProcessing, RobertaProcessing; ByteLevel only corrects offsets, which nobody here asks for.
// Texts are encoded one at a time, so the forms for pairs are not read.
class PostProcessor {
 public:
  static base::Result<PostProcessor> FromJson(const base::Json* json);
  // Puts the special tokens around ids.
  void Apply(std::vector<int32_t>& ids) const;

 private:
  struct Frame { std::vector<int32_t> before, after; };
  static base::Status Add(const base::Json& json, std::vector<Frame>& frames, int depth);
  static base::Result<Frame> Template(const base::Json& json);
  std::vector<Frame> frames_;  // applied one after the other
};

}  // namespace halfbyte::text
