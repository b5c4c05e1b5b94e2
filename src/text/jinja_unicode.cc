#include "text/jinja_unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>

#include "text/jinja_unicode_tables.h"

namespace halfbyte::text::jinja {
namespace {

constexpr uint32_t kReplacement = 0xFFFD;

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

bool InRanges(uint32_t code, const CodeRange* ranges, size_t count) {
  const CodeRange* end = ranges + count;
  const CodeRange* it = std::lower_bound(ranges, end, code, [](const CodeRange& r, uint32_t c) { return r.last < c; });
  return it != end && it->first <= code;
}

int Category(uint32_t code) { return utf8proc_category(static_cast<utf8proc_int32_t>(code)); }

void AppendFull(std::string& out, uint32_t code, const FullMapping* table, size_t count, uint32_t simple) {
  const FullMapping* end = table + count;
  const FullMapping* it = std::lower_bound(table, end, code, [](const FullMapping& m, uint32_t c) { return m.code < c; });
  if (it != end && it->code == code) out += it->utf8;
  else AppendUtf8(out, simple);
}

void AppendUpper(std::string& out, uint32_t code) {
  if (code < 0x80) { out.push_back(static_cast<char>(code >= 'a' && code <= 'z' ? code - 32 : code)); return; }
  AppendFull(out, code, kFullUpper, kFullUpperCount, utf8proc_toupper(static_cast<utf8proc_int32_t>(code)));
}

void AppendTitle(std::string& out, uint32_t code) {
  if (code < 0x80) { AppendUpper(out, code); return; }
  AppendFull(out, code, kFullTitle, kFullTitleCount, utf8proc_totitle(static_cast<utf8proc_int32_t>(code)));
}

// Transparent when looking for the letters around a sigma: marks, modifiers and the punctuation that stands inside words.
bool IsCaseIgnorable(uint32_t code) {
  switch (Category(code)) {
    case UTF8PROC_CATEGORY_MN: case UTF8PROC_CATEGORY_ME: case UTF8PROC_CATEGORY_CF: case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default: break;
  }
  static constexpr uint32_t kInsideWords[] = {0x27, 0x2E, 0x3A, 0xB7, 0x387, 0x55F, 0x5F4, 0x2018, 0x2019, 0x2024, 0x2027};
  return std::find(std::begin(kInsideWords), std::end(kInsideWords), code) != std::end(kInsideWords);
}

bool IsFinalSigma(std::string_view s, size_t at, size_t bytes) {
  size_t i = at, n = 0;
  bool letter_before = false;
  while (i > 0) {
    i = PreviousOffset(s, i);
    uint32_t code = DecodeAt(s, i, n);
    if (IsCaseIgnorable(code)) continue;
    letter_before = IsCased(code);
    break;
  }
  if (!letter_before) return false;
  for (size_t j = at + bytes; j < s.size(); j += n) {
    uint32_t code = DecodeAt(s, j, n);
    if (!IsCaseIgnorable(code)) return !IsCased(code);
  }
  return true;
}

void AppendLower(std::string& out, std::string_view s, size_t at, uint32_t code, size_t bytes) {
  if (code < 0x80) out.push_back(static_cast<char>(code >= 'A' && code <= 'Z' ? code + 32 : code));
  else if (code == 0x130) out += "i\xCC\x87";  // the only lower case of two characters
  else if (code == 0x3A3) AppendUtf8(out, IsFinalSigma(s, at, bytes) ? 0x3C2 : 0x3C3);
  else AppendUtf8(out, utf8proc_tolower(static_cast<utf8proc_int32_t>(code)));
}

template <typename F>
std::string MapCodePoints(std::string_view s, F append) {
  std::string out;
  out.reserve(s.size());
  size_t n = 0;
  for (size_t i = 0; i < s.size(); i += n) {
    uint32_t code = DecodeAt(s, i, n);
    append(out, i, code, n);
  }
  return out;
}

}  // namespace

uint32_t DecodeAt(std::string_view s, size_t at, size_t& bytes) {
  const auto* p = reinterpret_cast<const unsigned char*>(s.data()) + at;
  if (p[0] < 0x80) { bytes = 1; return p[0]; }
  utf8proc_int32_t code = 0;
  utf8proc_ssize_t n = utf8proc_iterate(p, static_cast<utf8proc_ssize_t>(std::min<size_t>(s.size() - at, 4)), &code);
  if (n <= 0) { bytes = 1; return kReplacement; }
  bytes = static_cast<size_t>(n);
  return static_cast<uint32_t>(code);
}

void AppendUtf8(std::string& out, uint32_t code) {
  if (code < 0x80) { out.push_back(static_cast<char>(code)); return; }
  unsigned char buffer[4];
  utf8proc_ssize_t n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), buffer);
  if (n > 0) out.append(reinterpret_cast<const char*>(buffer), static_cast<size_t>(n));
}

bool IsValidUtf8(std::string_view s) {
  size_t n = 0;
  for (size_t i = 0; i < s.size(); i += n) {
    if (DecodeAt(s, i, n) == kReplacement && n == 1) return false;
  }
  return true;
}

size_t CountCodePoints(std::string_view s) {
  size_t count = 0;
  for (char c : s) count += !IsContinuation(c);
  return count;
}

size_t ByteOffset(std::string_view s, size_t index) {
  size_t i = 0;
  for (; i < s.size(); ++i) {
    if (IsContinuation(s[i])) continue;
    if (index == 0) return i;
    --index;
  }
  return i;
}

size_t PreviousOffset(std::string_view s, size_t end) {
  size_t i = end - 1;
  while (i > 0 && end - i < 4 && IsContinuation(s[i])) --i;
  return i;
}

bool IsSpace(uint32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

bool IsAlpha(uint32_t c) {
  if (c < 0x80) return (c | 32) >= 'a' && (c | 32) <= 'z';
  int k = Category(c);
  return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

bool IsDecimal(uint32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  return Category(c) == UTF8PROC_CATEGORY_ND;
}

bool IsDigit(uint32_t c) { return IsDecimal(c) || InRanges(c, kOtherDigit, kOtherDigitCount); }

bool IsNumeric(uint32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  int k = Category(c);
  return (k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO) || InRanges(c, kOtherNumeric, kOtherNumericCount);
}

bool IsAlnum(uint32_t c) { return IsAlpha(c) || IsNumeric(c); }

bool IsLower(uint32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z';
  return Category(c) == UTF8PROC_CATEGORY_LL || InRanges(c, kOtherLowercase, kOtherLowercaseCount);
}

bool IsUpper(uint32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z';
  return Category(c) == UTF8PROC_CATEGORY_LU || InRanges(c, kOtherUppercase, kOtherUppercaseCount);
}

bool IsTitle(uint32_t c) { return c >= 0x80 && Category(c) == UTF8PROC_CATEGORY_LT; }

bool IsPrintable(uint32_t c) {
  if (c < 0x80) return c >= 0x20 && c != 0x7F;
  int k = Category(c);
  return k != UTF8PROC_CATEGORY_CN && k < UTF8PROC_CATEGORY_ZS;
}

bool IsIdentifierStart(uint32_t c) { return c == '_' || IsAlpha(c) || (c >= 0x80 && Category(c) == UTF8PROC_CATEGORY_NL); }

bool IsIdentifierPart(uint32_t c) {
  if (IsIdentifierStart(c) || IsDecimal(c)) return true;
  if (c < 0x80) return false;
  int k = Category(c);
  return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_MC || k == UTF8PROC_CATEGORY_PC || c == 0xB7 || c == 0x387;
}

std::string ToLower(std::string_view s) {
  return MapCodePoints(s, [&](std::string& out, size_t at, uint32_t code, size_t n) { AppendLower(out, s, at, code, n); });
}

std::string ToUpper(std::string_view s) {
  return MapCodePoints(s, [](std::string& out, size_t, uint32_t code, size_t) { AppendUpper(out, code); });
}

std::string ToTitle(std::string_view s) {
  bool inside = false;
  return MapCodePoints(s, [&](std::string& out, size_t at, uint32_t code, size_t n) {
    if (inside) AppendLower(out, s, at, code, n);
    else AppendTitle(out, code);
    inside = IsCased(code);
  });
}

std::string ToCapitalized(std::string_view s) {
  return MapCodePoints(s, [&](std::string& out, size_t at, uint32_t code, size_t n) {
    if (at == 0) AppendTitle(out, code);
    else AppendLower(out, s, at, code, n);
  });
}

std::string SwapCase(std::string_view s) {
  return MapCodePoints(s, [&](std::string& out, size_t at, uint32_t code, size_t n) {
    if (IsUpper(code)) AppendLower(out, s, at, code, n);
    else if (IsLower(code)) AppendUpper(out, code);
    else AppendUtf8(out, code);
  });
}

std::string CaseFold(std::string_view s) {
  utf8proc_uint8_t* folded = nullptr;
  utf8proc_ssize_t n = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(s.data()), static_cast<utf8proc_ssize_t>(s.size()),
                                    &folded, UTF8PROC_CASEFOLD);
  if (n < 0) return ToLower(s);  // not UTF-8
  std::string out(reinterpret_cast<const char*>(folded), static_cast<size_t>(n));
  std::free(folded);
  return out;
}

std::string_view Strip(std::string_view s, const std::string_view* set, bool left, bool right) {
  auto removed = [&](size_t at, size_t& n) {
    uint32_t code = DecodeAt(s, at, n);
    if (set == nullptr) return IsSpace(code);
    if (n == 1 && code < 0x80) return set->find(static_cast<char>(code)) != set->npos;
    return set->find(s.substr(at, n)) != set->npos;
  };
  size_t n = 0;
  if (left) {
    while (!s.empty() && removed(0, n)) s.remove_prefix(n);
  }
  while (right && !s.empty()) {
    size_t at = PreviousOffset(s, s.size());
    if (!removed(at, n)) break;
    s.remove_suffix(s.size() - at);
  }
  return s;
}

}  // namespace halfbyte::text::jinja
