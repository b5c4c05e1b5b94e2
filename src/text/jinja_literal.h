// Number and string literals of the template language, which are Python's with a few of Python's oddities left out.
#pragma once

#include <string>
#include <string_view>

#include "text/jinja_value.h"

namespace halfbyte::text::jinja {

// How many bytes of s (at its start) are a float literal: digits with a fraction, an exponent or both; 0 for none. After a
// dot there is none: x.0.1 is two item accesses.
size_t FloatLength(std::string_view s, bool after_dot);
// The same for an integer: decimal without leading zeros, 0x, 0o, 0b, single underscores between digits.
size_t IntegerLength(std::string_view s);
double ParseFloatLiteral(std::string_view s);
Int ParseIntegerLiteral(std::string_view s, int line);

// The text between the quotes with its backslash escapes resolved. \N{...} and lone surrogates are errors.
std::string UnescapeLiteral(std::string_view s, int line);

// int(text, base) and float(text): false where Python raises a ValueError. A base of 0 takes the prefix's.
bool ParseInt(std::string_view text, int base, Int& out);
bool ParseFloat(std::string_view text, double& out);

}  // namespace halfbyte::text::jinja
