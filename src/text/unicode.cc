#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace halfbyte::text {
namespace {

struct CaseRange { char32_t first, last; int32_t delta; };
struct Script { std::string_view name; std::span<const CodeRange> ranges; };

#include "text/unicode_tables.inc"

bool Contains(std::span<const CodeRange> ranges, char32_t code) {
  auto after = std::upper_bound(ranges.begin(), ranges.end(), code, [](char32_t c, const CodeRange& r) { return c < r.first; });
  return after != ranges.begin() && code <= std::prev(after)->last;
}

const CodePointTable<Category>& Categories() {
  static const CodePointTable<Category> table([run = size_t{0}](char32_t code) mutable {
    while (run + 1 < std::size(kCategoryRuns) && kCategoryRuns[run + 1] >> 8 <= code) ++run;
    return static_cast<Category>(kCategoryRuns[run] & 0xFF);
  });
  return table;
}

bool In(char32_t code, Category first, Category last) {
  Category c = CategoryOf(code);
  return first <= c && c <= last;
}

// Length of a leading run of ASCII, eight bytes at a time.
size_t AsciiPrefix(std::string_view text) {
  size_t i = 0;
  for (uint64_t word; i + 8 <= text.size(); i += 8) {
    std::memcpy(&word, text.data() + i, 8);
    if (word & 0x8080808080808080u) break;
  }
  while (i < text.size() && static_cast<unsigned char>(text[i]) < 0x80) ++i;
  return i;
}

}  // namespace

Decoded DecodeBefore(const char* end) {
  const char* p = end - 1;
  while ((static_cast<unsigned char>(*p) & 0xC0) == 0x80) --p;
  return DecodeValid(p);
}

void AppendUtf8(std::string& out, char32_t c) {
  auto put = [&out](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) { put(c); return; }
  if (c < 0x800) { put(0xC0 | c >> 6); put(0x80 | (c & 0x3F)); return; }
  if (c < 0x10000) { put(0xE0 | c >> 12); put(0x80 | (c >> 6 & 0x3F)); put(0x80 | (c & 0x3F)); return; }
  put(0xF0 | c >> 18); put(0x80 | (c >> 12 & 0x3F)); put(0x80 | (c >> 6 & 0x3F)); put(0x80 | (c & 0x3F));
}

Utf8Step StepUtf8(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char lead = byte(0);
  if (lead < 0x80) return {Utf8Step::kCharacter, 1};
  if (lead < 0xC2 || lead > 0xF4) return {Utf8Step::kInvalid, 1};
  uint32_t need = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte's range excludes overlong forms, surrogates and codes above U+10FFFF (Unicode table 3-7).
  unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80, high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (uint32_t i = 1; i < need; ++i) {
    if (i == text.size()) return {Utf8Step::kIncomplete, i};
    if (byte(i) < low || byte(i) > high) return {Utf8Step::kInvalid, i};
    low = 0x80, high = 0xBF;
  }
  return {Utf8Step::kCharacter, need};
}

bool IsValidUtf8(std::string_view text) {
  for (;;) {
    text.remove_prefix(AsciiPrefix(text));
    // Text in another script stays here for whole sentences; going back for every space would cost more than it saves.
    for (int characters = 0; !text.empty() && characters < 64; ++characters) {
      Utf8Step step = StepUtf8(text);
      if (step.kind != Utf8Step::kCharacter) return false;
      text.remove_prefix(step.size);
    }
    if (text.empty()) return true;
  }
}

std::string ReplaceInvalidUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 8);
  while (!text.empty()) {
    Utf8Step step = StepUtf8(text);
    out += step.kind == Utf8Step::kCharacter ? text.substr(0, step.size) : kReplacementCharacter;
    text.remove_prefix(step.size);
  }
  return out;
}

Category CategoryOf(char32_t code) { return code > 0x10FFFF ? Category::kCn : Categories()[code]; }

bool IsLetter(char32_t code) { return In(code, Category::kLu, Category::kLo); }
bool IsMark(char32_t code) { return In(code, Category::kMn, Category::kMe); }
bool IsNumber(char32_t code) { return In(code, Category::kNd, Category::kNo); }
bool IsWhitespace(char32_t code) {
  return (code >= 9 && code <= 13) || code == 0x85 || (code >= 32 && In(code, Category::kZs, Category::kZp));
}
bool IsRustWord(char32_t code) {
  Category c = CategoryOf(code);
  return c <= Category::kNl || c == Category::kPc || code == 0x200C || code == 0x200D || Contains(kOtherAlphabetic, code);
}
bool IsBertPunctuation(char32_t code) {
  if (code < 0x80) return code > 32 && code < 127 && In(code, Category::kPc, Category::kSo);
  return (In(code, Category::kPc, Category::kPo) && !Contains(kYoungPunctuation, code)) || Contains(kOldPunctuation, code);
}
bool IsNumeric(char32_t code) { return IsNumber(code) || Contains(kYoungNumeric, code); }
bool IsInUnicode9(char32_t code) { return Contains(kUnicode9, code); }

void AppendLowercase(std::string& out, char32_t code) {
  if (code == 0x130) { out += "i\xCC\x87"; return; }  // the only lower case of two characters
  auto row = std::find_if(std::begin(kYoungLowercase), std::end(kYoungLowercase),
                          [&](const CaseRange& r) { return r.first <= code && code <= r.last; });
  if (row != std::end(kYoungLowercase)) code += static_cast<char32_t>(row->delta);
  else code = static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)));
  AppendUtf8(out, code);
}

std::span<const uint32_t> CategoryRuns() { return kCategoryRuns; }
std::span<const CodeRange> OtherAlphabetic() { return kOtherAlphabetic; }
std::span<const CodeRange> OtherUppercase() { return kOtherUppercase; }
std::span<const CodeRange> OtherLowercase() { return kOtherLowercase; }
std::span<const CodeRange> ScriptRanges(std::string_view name) {
  for (const Script& s : kScripts) if (s.name == name) return s.ranges;
  return {};
}

}  // namespace halfbyte::text
