// Numbers and padding as Python's format specifications and % conversions write them.
#pragma once

#include <string>

#include "text/jinja_runtime.h"

namespace halfbyte::text::jinja {

// [[fill]align][sign][#][0][width][grouping][.precision][type]
struct NumberFormat {
  std::string fill = " ";  // one character
  char align = 0;          // '<' '>' '^' '='; 0: the type's own
  char sign = '-';         // '-' '+' ' '
  bool alternate = false;  // #
  char grouping = 0;       // ',' '_' or none
  int64_t width = 0;
  int64_t precision = -1;  // -1: not given
  char type = 0;           // 0: not given
};

std::string FormatInt(Runtime& r, Int i, const NumberFormat& format);       // types b c d o x X n, or none
std::string FormatFloat(Runtime& r, double d, const NumberFormat& format);  // types e E f F g G n %, or none
// Text brought to the width; `align` is used where the format has none.
std::string PadText(Runtime& r, std::string_view text, const NumberFormat& format, char align);

}  // namespace halfbyte::text::jinja
