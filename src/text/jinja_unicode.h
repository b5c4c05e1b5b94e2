// Python's view of text for the template engine: strings are UTF-8 here, but they are indexed, measured and classified by
// code point, and case changes follow the full Unicode mappings (one character may become three), as Python's str does.
//
// Input that is not valid UTF-8 never reads out of bounds: each stray byte counts as one U+FFFD.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace halfbyte::text::jinja {

// The code point at s[at] (at < s.size()) and, in `bytes`, how many bytes it takes (at least 1).
uint32_t DecodeAt(std::string_view s, size_t at, size_t& bytes);
void AppendUtf8(std::string& out, uint32_t code);
bool IsValidUtf8(std::string_view s);

size_t CountCodePoints(std::string_view s);
// The byte offset of code point `index`, s.size() if there are not so many.
size_t ByteOffset(std::string_view s, size_t index);
// The byte offset of the code point that ends at `end` (end > 0).
size_t PreviousOffset(std::string_view s, size_t end);

bool IsSpace(uint32_t code);      // str.isspace, also what \s matches and strip() removes
bool IsAlpha(uint32_t code);
bool IsDecimal(uint32_t code);
bool IsDigit(uint32_t code);
bool IsNumeric(uint32_t code);
bool IsAlnum(uint32_t code);
bool IsLower(uint32_t code);      // the derived property, wider than category Ll
bool IsUpper(uint32_t code);
bool IsTitle(uint32_t code);      // category Lt
bool IsPrintable(uint32_t code);  // what repr() shows as it is
bool IsIdentifierStart(uint32_t code);
bool IsIdentifierPart(uint32_t code);
inline bool IsCased(uint32_t code) { return IsLower(code) || IsUpper(code) || IsTitle(code); }

std::string ToLower(std::string_view s);  // a final sigma becomes U+03C2
std::string ToUpper(std::string_view s);
std::string ToTitle(std::string_view s);        // str.title
std::string ToCapitalized(std::string_view s);  // str.capitalize: the first character in title case, the rest lower
std::string SwapCase(std::string_view s);
std::string CaseFold(std::string_view s);

// Without the characters of `set` (code points; nullptr: white space) on the chosen sides.
std::string_view Strip(std::string_view s, const std::string_view* set, bool left, bool right);

}  // namespace halfbyte::text::jinja
