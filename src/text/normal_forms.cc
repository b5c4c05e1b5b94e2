#include "text/normal_forms.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "text/unicode.h"

namespace halfbyte::text {
namespace {

using Codes = std::vector<utf8proc_int32_t>;

// Of a code point: combining class << 8, and whether a form may change it.
enum Change : uint16_t {
  kComposes = 1,             // may join the character before it, or its own canonical composition is another one
  kDecomposes = 2,           // has a canonical decomposition
  kCompatComposes = 4,       // the same two with compatibility mappings
  kCompatDecomposes = 8,
  kStartsNothing = 16,       // neither this nor what follows joins what stands before it
};

void Decompose(char32_t code, bool compatible, Codes& out) {
  utf8proc_int32_t buffer[64];  // the longest decomposition has 18 code points (U+FDFA)
  int boundary = 0;
  int options = UTF8PROC_DECOMPOSE | UTF8PROC_STABLE | (compatible ? UTF8PROC_COMPAT : 0);
  utf8proc_ssize_t n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), buffer, std::size(buffer),
                                               static_cast<utf8proc_option_t>(options), &boundary);
  out.insert(out.end(), buffer, buffer + n);
}

size_t Compose(utf8proc_int32_t* codes, size_t count) {
  return static_cast<size_t>(utf8proc_normalize_utf32(codes, static_cast<utf8proc_ssize_t>(count),
                                                      static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE)));
}

constexpr bool IsHangulSyllable(char32_t c) { return c >= 0xAC00 && c <= 0xD7A3; }
constexpr bool IsTrailingJamo(char32_t c) { return (c >= 0x1161 && c <= 0x1175) || (c >= 0x11A8 && c <= 0x11C2); }

uint16_t ChangesOf(char32_t code) {
  // utf8proc 2.8 takes U+11A7, which precedes the trailing consonants, for one of them and swallows it.
  if (!IsInUnicode9(code) || code == 0x11A7) return kStartsNothing;
  const utf8proc_property_t* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(code));
  uint16_t flags = static_cast<uint16_t>(property->combining_class << 8);
  if (IsHangulSyllable(code)) return kDecomposes | kCompatDecomposes;
  if (IsTrailingJamo(code)) return kComposes | kCompatComposes;
  if (property->decomp_seqindex == UINT16_MAX) return flags;
  for (bool compatible : {false, true}) {
    Codes codes;
    Decompose(code, compatible, codes);
    if (codes.size() == 1 && static_cast<char32_t>(codes[0]) == code) continue;
    flags |= compatible ? kCompatDecomposes : kDecomposes;
    size_t count = Compose(codes.data(), codes.size());
    if (count != 1 || static_cast<char32_t>(codes[0]) != code) flags |= compatible ? kCompatComposes : kComposes;
  }
  return flags;
}

class Changes {
 public:
  Changes() : table_(ChangesOf) {
    // What ends the decomposition of a composed character may join the character before it.
    for (char32_t code = 0xC0; code < 0x30000; ++code) {
      if (!(table_[code] & kDecomposes) || (table_[code] & kComposes) || IsHangulSyllable(code)) continue;
      Codes codes;
      Decompose(code, false, codes);
      seconds_.push_back(static_cast<char32_t>(codes.back()));
    }
    std::sort(seconds_.begin(), seconds_.end());
    seconds_.erase(std::unique(seconds_.begin(), seconds_.end()), seconds_.end());
    table_ = CodePointTable<uint16_t>([this](char32_t code) {
      bool second = std::binary_search(seconds_.begin(), seconds_.end(), code);
      return static_cast<uint16_t>(table_[code] | (second ? kComposes | kCompatComposes : 0));
    });
  }
  uint16_t operator[](char32_t code) const { return table_[code]; }

 private:
  CodePointTable<uint16_t> table_;
  std::vector<char32_t> seconds_;
};

const Changes& Table() {
  static const Changes table;
  return table;
}

// The first byte, at or after `from`, of a character that may change or that stands in the wrong order; text.size() where there is none.
// Nothing below U+0300 changes in NFC, nothing below U+00A0 in any form.
size_t FirstChange(NormalForm form, std::string_view text, size_t from) {
  const char *p = text.data() + from, *end = text.data() + text.size();
  unsigned char first_lead = form == NormalForm::kNfc ? 0xCC : 0xC2;
  while (p < end && static_cast<unsigned char>(*p) < first_lead) ++p;
  if (p == end) return text.size();
  uint16_t change = form == NormalForm::kNfc ? kComposes : form == NormalForm::kNfd ? kDecomposes
                  : form == NormalForm::kNfkc ? kCompatComposes : kCompatDecomposes;
  const Changes& table = Table();
  for (int last_class = 0; p < end;) {
    if (static_cast<unsigned char>(*p) < 0x80) { last_class = 0; ++p; continue; }
    Decoded d = DecodeValid(p);
    uint16_t value = table[d.code];
    int combining_class = value >> 8;
    if ((value & change) || (combining_class != 0 && combining_class < last_class)) return static_cast<size_t>(p - text.data());
    last_class = combining_class;
    p += d.size;
  }
  return text.size();
}

// Marks of a run between two characters of class 0 in the order of their classes.
void Reorder(Codes& codes, const Changes& table) {
  auto class_of = [&](utf8proc_int32_t code) { return table[static_cast<char32_t>(code)] >> 8; };
  for (size_t begin = 0; begin < codes.size();) {
    if (class_of(codes[begin]) == 0) { ++begin; continue; }
    size_t end = begin;
    while (end < codes.size() && class_of(codes[end]) != 0) ++end;
    std::stable_sort(codes.begin() + static_cast<ptrdiff_t>(begin), codes.begin() + static_cast<ptrdiff_t>(end),
                     [&](auto a, auto b) { return class_of(a) < class_of(b); });
    begin = end;
  }
}

// Appends the form of a part that may change.
void Rewrite(NormalForm form, std::string_view text, Codes& codes, std::string& out) {
  bool compatible = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  bool compose = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  const Changes& table = Table();
  codes.clear();
  for (const char *p = text.data(), *end = p + text.size(); p < end;) {
    Decoded d = DecodeValid(p);
    p += d.size;
    if (table[d.code] & (compatible ? kCompatDecomposes | kDecomposes : kDecomposes)) Decompose(d.code, compatible, codes);
    else codes.push_back(static_cast<utf8proc_int32_t>(d.code));
  }
  Reorder(codes, table);
  auto starts_nothing = [&](size_t i) { return (table[static_cast<char32_t>(codes[i])] & kStartsNothing) != 0; };
  for (size_t begin = 0; begin < codes.size();) {
    size_t end = begin;
    while (end < codes.size() && !starts_nothing(end)) ++end;
    size_t count = compose ? Compose(codes.data() + begin, end - begin) : end - begin;
    for (size_t i = begin; i < begin + count; ++i) AppendUtf8(out, static_cast<char32_t>(codes[i]));
    if (end < codes.size()) AppendUtf8(out, static_cast<char32_t>(codes[end]));
    begin = end + 1;
  }
}

}  // namespace

bool ToNormalForm(NormalForm form, std::string_view text, std::string& out) {
  size_t change = FirstChange(form, text, 0);
  if (change == text.size()) return false;
  out.clear();
  out.reserve(text.size() + text.size() / 8);
  // An ASCII character never joins what stands before it, so a part that changes reaches at most from the front of one to that of the next.
  auto is_ascii = [&](size_t i) { return static_cast<unsigned char>(text[i]) < 0x80; };
  Codes codes;
  size_t done = 0;
  for (; change < text.size(); change = FirstChange(form, text, done)) {
    size_t begin = change, end = change;
    while (begin > done && !is_ascii(begin)) --begin;
    while (end < text.size() && !is_ascii(end)) ++end;
    out += text.substr(done, begin - done);
    Rewrite(form, text.substr(begin, end - begin), codes, out);
    done = end;
  }
  out += text.substr(done);
  return true;
}

}  // namespace halfbyte::text
