#include "text/split_pattern.h"

#include <mutex>

#include "text/unicode.h"

namespace halfbyte::text {
namespace {

// What the patterns ask about a character, as bits.
enum Flag : uint16_t {
  kL = 1, kN = 2, kM = 4, kP = 8, kS = 16,
  kSpace = 32,         // \s
  kNewline = 64,       // [\r\n]
  kUpperish = 128,     // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
  kLowerish = 256,     // [\p{Ll}\p{Lm}\p{Lo}\p{M}]
  kAsciiLetter = 512,  // [A-Za-z]
  kEastAsian = 1024,   // [一-龥\u3040-ゟ゠-ヿ], the range that DeepSeek's tokenizers set apart
};

uint16_t FlagsOf(char32_t code) {
  uint16_t flags = 0;
  Category c = CategoryOf(code);
  if (IsLetter(code)) flags |= kL;
  if (IsNumber(code)) flags |= kN;
  if (IsMark(code)) flags |= kM;
  if (c >= Category::kPc && c <= Category::kPo) flags |= kP;
  if (c >= Category::kSm && c <= Category::kSo) flags |= kS;
  if (IsWhitespace(code)) flags |= kSpace;
  if (code == '\r' || code == '\n') flags |= kNewline;
  if ((flags & (kL | kM)) && c != Category::kLl) flags |= kUpperish;
  if ((flags & (kL | kM)) && c != Category::kLu && c != Category::kLt) flags |= kLowerish;
  if (code < 0x80 && (flags & kL)) flags |= kAsciiLetter;
  if ((code >= 0x4E00 && code <= 0x9FA5) || (code >= 0x3040 && code <= 0x30FF)) flags |= kEastAsian;
  return flags;
}

struct FlagTable {
  uint16_t ascii[128];
  CodePointTable<uint16_t> all{FlagsOf};
  FlagTable() { for (char32_t c = 0; c < 128; ++c) ascii[c] = FlagsOf(c); }
};
// Built when the first scanner is asked for, so that programs without a tokenizer do not pay for it; every scanner comes from there.
const FlagTable* flag_table = nullptr;

struct Char { uint16_t flags; uint32_t size; };

// The end of the text is a character without flags and without size.
inline Char At(const char* p, const char* end) {
  if (p >= end) return {0, 0};
  unsigned char byte = static_cast<unsigned char>(*p);
  if (byte < 0x80) return {flag_table->ascii[byte], 1};
  Decoded d = DecodeValid(p);
  return {flag_table->all[d.code], d.size};
}
inline const char* SkipWhile(const char* p, const char* end, uint16_t flags) {
  for (Char c = At(p, end); c.flags & flags; c = At(p, end)) p += c.size;
  return p;
}
inline const char* SkipUntil(const char* p, const char* end, uint16_t flags) {
  for (Char c = At(p, end); c.size && !(c.flags & flags); c = At(p, end)) p += c.size;
  return p;
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d), or with lower case only; p itself where there is none.
template <bool kIgnoreCase>
inline const char* SkipContraction(const char* p, const char* end) {
  if (end - p < 2 || *p != '\'') return p;
  auto letter = [](char c) { return kIgnoreCase && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  char first = letter(p[1]);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return p + 2;
  if (end - p < 3) return p;
  if (kIgnoreCase && p[1] == '\xC5' && p[2] == '\xBF') return p + 3;  // U+017F, the long s, folds to s
  char second = letter(p[2]);
  if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l')) return p + 3;
  return p;
}

// \s*[\r\n]+ (where asked for), \s+(?!\S), \s+ in this order; *p is whitespace.
template <bool kNewlineRule>
inline const char* SkipWhitespace(const char* p, const char* end) {
  const char *last = p, *after_newline = nullptr, *q = p;
  for (Char c = At(q, end); c.flags & kSpace; c = At(q, end)) {
    last = q;
    q += c.size;
    if (kNewlineRule && (c.flags & kNewline)) after_newline = q;
  }
  if (after_newline != nullptr) return after_newline;
  return q == end || last == p ? q : last;  // the last blank goes with the word that follows
}

template <int kMost>
inline const char* SkipNumbers(const char* p, const char* end) {
  for (int n = 0; n < kMost; ++n) {
    Char c = At(p, end);
    if (!(c.flags & kN)) break;
    p += c.size;
  }
  return p;
}

// Qwen2/Qwen3 (one digit), Llama 3 and cl100k (three):
// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,k}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
template <int kDigits>
ScannedPiece ScanCl100k(const char* p, const char* end) {
  if (const char* q = SkipContraction<true>(p, end); q != p) return {q, true};
  Char c = At(p, end);
  if (c.flags & kL) return {SkipWhile(p + c.size, end, kL), true};
  if (c.flags & kN) return {SkipNumbers<kDigits>(p, end), true};
  const char* next = p + c.size;
  Char d = At(next, end);
  if (!(c.flags & kNewline) && (d.flags & kL)) return {SkipWhile(next + d.size, end, kL), true};
  const char* q = *p == ' ' ? next : p;
  if (const char* r = SkipUntil(q, end, kSpace | kL | kN); r != q) return {SkipWhile(r, end, kNewline), true};
  return {SkipWhitespace<true>(p, end), true};
}

// The two word alternatives of o200k from p on, without the optional first character:
//   U*W+ | U+W*   with U = kUpperish, W = kLowerish; letters without case and marks are in both.
// Where the first fails at the end of the run of U, backtracking leaves U* before the last character that W takes, and W+ takes that one.
const char* SkipCasedWord(const char* p, const char* end, bool first_alternative) {
  const char *q = p, *after_last_lowerish = nullptr;
  for (Char c = At(q, end); c.flags & kUpperish; c = At(q, end)) {
    q += c.size;
    if (c.flags & kLowerish) after_last_lowerish = q;
  }
  if (At(q, end).flags & kLowerish) return SkipWhile(q, end, kLowerish);
  if (first_alternative) return after_last_lowerish;  // nullptr: no match
  return q == p ? nullptr : q;
}

// gpt-oss (o200k); the pattern stands in kScanners below.
ScannedPiece ScanO200k(const char* p, const char* end) {
  Char c = At(p, end);
  const char* next = p + c.size;
  bool may_lead = !(c.flags & (kNewline | kL | kN));  // [^\r\n\p{L}\p{N}]
  for (bool first_alternative : {true, false}) {
    const char* word = may_lead ? SkipCasedWord(next, end, first_alternative) : nullptr;
    if (word == nullptr && (c.flags & (kL | kM))) word = SkipCasedWord(p, end, first_alternative);
    if (word != nullptr) return {SkipContraction<true>(word, end), true};
  }
  if (c.flags & kN) return {SkipNumbers<3>(p, end), true};
  const char* q = *p == ' ' ? next : p;
  if (const char* r = SkipUntil(q, end, kSpace | kL | kN); r != q) {
    while (r < end && (*r == '\r' || *r == '\n' || *r == '/')) ++r;
    return {r, true};
  }
  return {SkipWhitespace<true>(p, end), true};
}

// GPT-2, which the ByteLevel pre-tokenizer has built in.
ScannedPiece ScanGpt2(const char* p, const char* end) {
  if (const char* q = SkipContraction<false>(p, end); q != p) return {q, true};
  const char* q = *p == ' ' ? p + 1 : p;
  Char c = At(q, end);
  if (c.flags & kL) return {SkipWhile(q, end, kL), true};
  if (c.flags & kN) return {SkipWhile(q, end, kN), true};
  if (c.size != 0 && !(c.flags & kSpace)) return {SkipUntil(q, end, kSpace | kL | kN), true};
  return {SkipWhitespace<false>(p, end), true};
}

// DeepSeek-V3's third step. Numbers, control characters and unassigned code points match nothing.
ScannedPiece ScanDeepSeek(const char* p, const char* end) {
  Char c = At(p, end);
  const char* next = p + c.size;
  Char d = At(next, end);
  if (c.size == 1 && (c.flags & (kP | kS)) && (d.flags & kAsciiLetter)) return {SkipWhile(next, end, kAsciiLetter), true};
  if (c.flags & (kL | kM)) return {SkipWhile(next, end, kL | kM), true};
  if (!(c.flags & (kNewline | kP | kS)) && (d.flags & (kL | kM))) return {SkipWhile(next, end, kL | kM), true};
  const char* q = *p == ' ' ? next : p;
  if (const char* r = SkipWhile(q, end, kP | kS); r != q) return {SkipWhile(r, end, kNewline), true};
  if (c.flags & kSpace) return {SkipWhitespace<true>(p, end), true};
  return {next, false};
}

ScannedPiece ScanThreeNumbers(const char* p, const char* end) {
  const char* q = SkipNumbers<3>(p, end);
  return q != p ? ScannedPiece{q, true} : ScannedPiece{SkipUntil(p, end, kN), false};
}
ScannedPiece ScanEastAsian(const char* p, const char* end) {
  const char* q = SkipWhile(p, end, kEastAsian);
  return q != p ? ScannedPiece{q, true} : ScannedPiece{SkipUntil(p, end, kEastAsian), false};
}

struct KnownPattern { std::string_view pattern; Scanner scanner; };
constexpr KnownPattern kScanners[] = {
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)", ScanCl100k<1>},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)", ScanCl100k<3>},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)", ScanO200k},
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", ScanGpt2},
    {"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|"
     "\\s*[\r\n]+|\\s+(?!\\S)|\\s+", ScanDeepSeek},
    {R"(\p{N}{1,3})", ScanThreeNumbers},
    {"[一-龥\u3040-ゟ゠-ヿ]+", ScanEastAsian},
};

}  // namespace

Scanner FindScanner(std::string_view pattern) {
  static std::once_flag once;
  std::call_once(once, [] { flag_table = new FlagTable; });  // for the life of the process
  for (const KnownPattern& known : kScanners) if (known.pattern == pattern) return known.scanner;
  return nullptr;
}

SplitPattern SplitPattern::FromScanner(Scanner scanner) {
  SplitPattern split;
  split.scanner_ = scanner;
  return split;
}

base::Result<SplitPattern> SplitPattern::FromRegex(std::string_view pattern) {
  if (Scanner scanner = FindScanner(pattern)) return FromScanner(scanner);
  SplitPattern split;
  HB_ASSIGN_OR_RETURN(split.regex_, Regex::Compile(pattern));
  return split;
}

base::Result<SplitPattern> SplitPattern::FromLiteral(std::string_view text) {
  SplitPattern split;
  // The empty text matches between all characters, which the regular expression does right.
  if (text.empty()) { HB_ASSIGN_OR_RETURN(split.regex_, Regex::CompileLiteral(text)); }
  split.literal_ = text;
  return split;
}

}  // namespace halfbyte::text
