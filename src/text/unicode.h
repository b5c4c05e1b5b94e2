// UTF-8 and the character properties that tokenizers depend on.
//
// The properties follow Unicode 16.0 whatever the C library, PCRE2 or utf8proc of the machine know, because token ids must not depend
// on the distribution: unicode_tables.inc holds them, made from what Hugging Face's tokenizers library matches.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace halfbyte::text {

struct CodeRange { char32_t first, last; };  // both included

// ---- UTF-8 ----

struct Decoded { char32_t code; uint32_t size; };

// The character that starts at *p; the text must be valid UTF-8 from there on.
inline Decoded DecodeValid(const char* p) {
  auto byte = [p](int i) { return static_cast<char32_t>(static_cast<unsigned char>(p[i])); };
  char32_t c = byte(0);
  if (c < 0x80) return {c, 1};
  if (c < 0xE0) return {(c & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (c < 0xF0) return {(c & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(c & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}
// The character that ends just before *end, in valid UTF-8.
Decoded DecodeBefore(const char* end);

void AppendUtf8(std::string& out, char32_t code);

// What stands at the start of a text that need not be valid: a character, a maximal part that cannot become one, or the start of one.
struct Utf8Step { enum Kind : uint8_t { kCharacter, kInvalid, kIncomplete } kind; uint32_t size; };
Utf8Step StepUtf8(std::string_view text);  // text must not be empty

bool IsValidUtf8(std::string_view text);
// Each maximal invalid part becomes one U+FFFD (the practice of the WHATWG and of Rust's from_utf8_lossy).
std::string ReplaceInvalidUtf8(std::string_view text);
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

// ---- properties ----

// The order is that of unicode_tables.inc.
enum class Category : uint8_t {
  kLu, kLl, kLt, kLm, kLo, kMn, kMc, kMe, kNd, kNl, kNo, kPc, kPd, kPs, kPe, kPi, kPf, kPo, kSm, kSc, kSk, kSo, kZs, kZl, kZp,
  kCc, kCf, kCs, kCo, kCn,
};
inline constexpr int kCategories = 30;

Category CategoryOf(char32_t code);

bool IsLetter(char32_t code);       // \p{L}
bool IsMark(char32_t code);         // \p{M}
bool IsNumber(char32_t code);       // \p{N}
bool IsWhitespace(char32_t code);   // White_Space, 25 code points
bool IsRustWord(char32_t code);     // \w of Rust's regex crate: Alphabetic, M, Nd, Pc, Join_Control
bool IsBertPunctuation(char32_t code);  // ASCII punctuation and symbols, and \p{P} as the Punctuation pre-tokenizer knows it
bool IsNumeric(char32_t code);      // what the Digits pre-tokenizer splits off: \p{N} and the numbers of Unicode 17.0
bool IsInUnicode9(char32_t code);   // assigned in Unicode 9.0; later code points are inert in normalization forms
void AppendLowercase(std::string& out, char32_t code);

// Ranges of named sets, for the regex translator.
std::span<const uint32_t> CategoryRuns();  // (first << 8) + category, each until the next
std::span<const CodeRange> OtherAlphabetic();
std::span<const CodeRange> OtherUppercase();
std::span<const CodeRange> OtherLowercase();
std::span<const CodeRange> ScriptRanges(std::string_view lower_case_name);  // empty where the script is not in the tables

// A value per code point in two steps: the high bits choose a block of 256, equal blocks are stored once.
template <typename T>
class CodePointTable {
 public:
  template <typename Function>
  explicit CodePointTable(Function value_of) {
    std::vector<T> block(256);
    for (uint32_t high = 0; high < kBlocks; ++high) {
      for (uint32_t low = 0; low < 256; ++low) block[low] = value_of(static_cast<char32_t>(high << 8 | low));
      index_[high] = Store(block);
    }
  }
  T operator[](char32_t code) const { return values_[static_cast<size_t>(index_[code >> 8]) << 8 | (code & 0xFF)]; }

 private:
  static constexpr uint32_t kBlocks = 0x1100;
  uint16_t Store(const std::vector<T>& block) {
    // Neighbouring blocks are mostly equal (ideographs, unassigned planes), so only the last few are compared.
    size_t stored = values_.size() / 256;
    for (size_t b = stored > 8 ? stored - 8 : 0; b < stored; ++b)
      if (std::equal(block.begin(), block.end(), values_.begin() + static_cast<ptrdiff_t>(b * 256)))
        return static_cast<uint16_t>(b);
    values_.insert(values_.end(), block.begin(), block.end());
    return static_cast<uint16_t>(stored);
  }
  uint16_t index_[kBlocks];
  std::vector<T> values_;
};

}  // namespace halfbyte::text
