// |wordwrap: Python's textwrap.wrap with expand_tabs and replace_whitespace off.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace halfbyte::text::jinja {

// The lines of one paragraph, each at most `width` (> 0) characters long where words allow it.
std::vector<std::string> WrapText(std::string_view paragraph, int64_t width, bool break_long_words, bool break_on_hyphens);

}  // namespace halfbyte::text::jinja
