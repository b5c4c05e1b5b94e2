#include "text_data.h"

#include "text/byte_level.h"

namespace halfbyte::text {

std::string ByteTokenizer::Json() const {
  base::Json::Object vocabulary;
  for (int b = 0; b < 256; ++b) vocabulary.emplace_back(BytesToChars(std::string(1, static_cast<char>(b))), base::Json(b));
  base::Json::Array list;
  for (const auto& [left, right] : merges) {
    vocabulary.emplace_back(BytesToChars(left + right), base::Json(static_cast<int>(256 + list.size())));
    list.push_back(base::Json(base::Json::Array{base::Json(BytesToChars(left)), base::Json(BytesToChars(right))}));
  }
  for (const auto& [bytes, id] : more) vocabulary.emplace_back(BytesToChars(bytes), base::Json(id));
  return R"({"version":"1.0","added_tokens":)" + added_tokens + R"(,"normalizer":)" + normalizer + R"(,"pre_tokenizer":)" + pre_tokenizer +
         R"(,"decoder":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":)" + base::Json(vocabulary).Dump() + R"(,"merges":)" +
         base::Json(list).Dump() + "}}";
}

}  // namespace halfbyte::text
