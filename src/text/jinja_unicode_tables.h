// What Python's str methods know about characters beyond the general category: data only, see jinja_unicode.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace halfbyte::text::jinja {

struct CodeRange {
  uint32_t first, last;  // both included
};
struct FullMapping {
  uint32_t code;
  const char* utf8;  // what it becomes, two or three characters
};

extern const CodeRange kOtherLowercase[], kOtherUppercase[], kOtherDigit[], kOtherNumeric[];
extern const size_t kOtherLowercaseCount, kOtherUppercaseCount, kOtherDigitCount, kOtherNumericCount;
extern const FullMapping kFullUpper[], kFullTitle[];
extern const size_t kFullUpperCount, kFullTitleCount;

}  // namespace halfbyte::text::jinja
