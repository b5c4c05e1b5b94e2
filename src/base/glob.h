// Patterns with `*`, as exclude lists of checkpoints write them.
#pragma once

#include <string_view>

namespace halfbyte::base {

// `*` any run of characters, everything else literal; the whole text must match. Linear in practice (greedy with one restart point).
bool Glob(std::string_view pattern, std::string_view text);

}  // namespace halfbyte::base
