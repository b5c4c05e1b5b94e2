// Taking strings apart: split, rsplit, splitlines and the searches under them, by Python's rules.
#pragma once

#include "text/jinja_runtime.h"

namespace halfbyte::text::jinja {

// `separator` missing or None: runs of white space. `most` < 0: no limit. `from_right`: rsplit.
Value Split(Runtime& r, const Value& text, const Value& separator, Int most, bool from_right);
// The lines of a text, with or without what ends them (\n, \r\n, \r, \v, \f, \x1c-\x1e, \x85, U+2028, U+2029).
std::vector<std::string_view> SplitLines(std::string_view text, bool keep_ends);
// Every occurrence of `from` (up to `most`, < 0: all) replaced; an empty `from` stands between all characters.
std::string Replace(Runtime& r, std::string_view text, std::string_view from, std::string_view to, Int most);

}  // namespace halfbyte::text::jinja
