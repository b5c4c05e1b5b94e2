// Any bytes as text: encoding and decoding give the text back, streams give what the whole gives, the scanners cut like the regular
// expressions they stand for, and stop strings do not depend on how the text is cut.
#include "base/check.h"
#include "base/json.h"
#include "text/byte_level.h"
#include "text/normal_forms.h"
#include "text/split_pattern.h"
#include "text/stop_strings.h"
#include "text/streaming_detokenizer.h"
#include "text/unicode.h"

namespace {

using namespace halfbyte;
using text::Tokenizer;

const char* const kPatterns[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    (R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"),
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
    ("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|"
    "\\s*[\r\n]+|\\s+(?!\\S)|\\s+"),
};

// 256 bytes and a few merges; byte-level, or in SentencePiece's style with byte fallback.
Tokenizer MakeTokenizer(bool byte_level) {
  base::Json vocabulary = base::Json::MakeObject(), merges = base::Json::MakeArray();
  int next = 0;
  for (int b = 0; b < 256; ++b) {
    char fallback[8];
    std::snprintf(fallback, sizeof fallback, "<0x%02X>", static_cast<unsigned>(b));
    vocabulary.Set(byte_level ? text::BytesToChars(std::string(1, static_cast<char>(b))) : std::string(fallback),
                   base::Json(next++));
  }
  if (!byte_level) for (const char* letter : {"a", "b", "\u2581", "\u00e9"}) vocabulary.Set(letter, base::Json(next++));
  for (auto [left, right] :
       {std::pair<std::string, std::string>{"a", "b"}, {"a", "a"}, {"aa", "aa"}, {byte_level ? "\u0120" : "\u2581", "a"}}) {
    vocabulary.Set(left + right, base::Json(next++));
    merges.Push(base::Json(base::Json::Array{base::Json(left), base::Json(right)}));
  }
  const std::string head = byte_level ? R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"use_regex":true},"decoder":{"type":"ByteLevel"})"
      : R"("normalizer":{"type":"Replace","pattern":{"String":" "},"content":"▁"},"decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"}]})";
  return Tokenizer::FromJson("{" + head + R"(,"model":{"type":"BPE","byte_fallback":true,"vocab":)" + vocabulary.Dump() + R"(,"merges":)" + merges.Dump() + "}}").value();
}

template <typename Pattern>
std::vector<size_t> Cuts(const Pattern& pattern, std::string_view text) {
  std::vector<size_t> cuts;
  pattern.Walk(text, [&](size_t begin, size_t end, bool is_match) { cuts.insert(cuts.end(), {begin, end, is_match}); });
  return cuts;
}

void CheckRoundTrip(const Tokenizer& tokenizer, std::string_view given, const std::string& want) {
  std::vector<int32_t> ids = tokenizer.Encode(given, false);
  HB_CHECK(tokenizer.Decode(ids, false) == want);
  text::StreamingDetokenizer stream(tokenizer, false);
  std::string streamed;
  for (int32_t id : ids) {
    HB_CHECK(id < tokenizer.vocab_size());
    streamed += stream.Push(id);
    HB_CHECK(text::IsValidUtf8(streamed));
  }
  HB_CHECK(streamed + stream.Flush() == want);
}

void CheckStopStrings(std::string_view text) {
  std::vector<std::string> stop = {std::string(text.substr(text.size() / 2, 3)), std::string(text.substr(text.size() / 3, 5))};
  text::StopStrings whole(stop), bytes(stop);
  std::string a = whole.Push(text), b;
  a += whole.Flush();
  for (char c : text) b += bytes.Push({&c, 1});
  HB_CHECK(a == b + bytes.Flush() && whole.matched() == bytes.matched());
  HB_CHECK(a == text.substr(0, a.size()));
  for (const std::string& s : stop) HB_CHECK(s.empty() || a.find(s) == a.npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Tokenizer byte_level = MakeTokenizer(true), sentence_piece = MakeTokenizer(false);
  std::string_view given(reinterpret_cast<const char*>(data), size);
  std::string valid = text::ReplaceInvalidUtf8(given);
  HB_CHECK(text::IsValidUtf8(valid) && (valid == given) == text::IsValidUtf8(given));
  CheckRoundTrip(byte_level, given, valid);
  // U+2581 in the text reads like a blank, as in every such model.
  std::string blanks = valid;
  for (size_t at; (at = blanks.find("\u2581")) != blanks.npos;) blanks.replace(at, 3, " ");
  CheckRoundTrip(sentence_piece, given, blanks);
  CheckStopStrings(given);

  static const auto patterns = [] {
    std::vector<std::pair<text::SplitPattern, text::Regex>> all;
    for (const char* p : kPatterns) all.emplace_back(text::SplitPattern::FromRegex(p).value(), text::Regex::Compile(p).value());
    return all;
  }();
  for (const auto& [scanner, regex] : patterns) HB_CHECK(Cuts(scanner, valid) == Cuts(regex, valid));

  for (auto form : {text::NormalForm::kNfc, text::NormalForm::kNfd, text::NormalForm::kNfkc, text::NormalForm::kNfkd}) {
    std::string once, twice;
    if (!text::ToNormalForm(form, valid, once)) continue;
    HB_CHECK(text::IsValidUtf8(once));
    HB_CHECK(!text::ToNormalForm(form, once, twice) || twice == once);
  }
  return 0;
}
