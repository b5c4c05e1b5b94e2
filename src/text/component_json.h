// What reading normalizers, pre-tokenizers, post-processors and decoders from tokenizer.json has in common.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "text/split_pattern.h"

namespace halfbyte::text {

// The "type" of a component; sequences may nest to a depth that no real file comes near.
base::Result<std::string> ComponentType(const base::Json& json, int depth);

// "the decoder CTC is not supported"
tl::unexpected<base::Error> UnknownComponent(std::string_view kind, std::string_view type);

// "pattern": {"Regex": ...} is a regular expression, {"String": ...} the text itself (user case T20).
base::Result<SplitPattern> PatternFromJson(const base::Json& json);

// One character, as in "replacement": "\u2581".
base::Result<char32_t> CharacterFromJson(const base::Json& json, std::string_view key, char32_t otherwise);

// Calls add for every element of the array at `key`.
template <typename Add>
base::Status ForEachComponent(const base::Json& json, std::string_view key, Add add) {
  const base::Json* parts = json.Find(key);
  if (parts == nullptr || !parts->is_array())
    return base::Fail(base::ErrorCode::kBadFile, "a Sequence without the list \"", key, "\"");
  for (const base::Json& part : parts->as_array()) HB_RETURN_IF_ERROR(add(part));
  return {};
}

}  // namespace halfbyte::text
