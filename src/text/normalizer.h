// The "normalizer" of a tokenizer.json: what happens to the text before it is divided.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace halfbyte::text {

// One step. Text in and out is valid UTF-8.
class NormalizerStep {
 public:
  virtual ~NormalizerStep() = default;
  // False where nothing changes (out is not touched), else true with the result in out.
  virtual bool Apply(std::string_view text, std::string& out) const = 0;
};

// Sequence, NFC, NFD, NFKC, NFKD, Prepend, Replace, Lowercase, Strip, StripAccents, Nmt, BertNormalizer, ByteLevel.
class Normalizer {
 public:
  // nullptr or null: the text stays as it is. An unknown "type" is an error that names it.
  static base::Result<Normalizer> FromJson(const base::Json* json);

  // The normalized text: `text` itself where nothing changed, else what is in `buffer`.
  std::string_view Apply(std::string_view text, std::string& buffer) const;

 private:
  std::vector<std::shared_ptr<const NormalizerStep>> steps_;
};

}  // namespace halfbyte::text
