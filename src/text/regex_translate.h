// Turns a regular expression as tokenizer.json files write it (Oniguruma, Ruby syntax) into one for PCRE2 with the same meaning.
//
// Every character class is written out as ranges of code points from our own Unicode 16.0 tables, so that neither the Unicode version
// nor the class rules of the installed PCRE2 matter. What the two engines read differently is rewritten ((?m), \h, $, {,n}); what has
// no counterpart (subexpression calls, absence operators, (?x), \G ...) is an error that names it, never a guess.
// One known difference stays: under (?i) Oniguruma also matches several characters for one ("ss" for U+00DF).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace halfbyte::text {

// For pcre2_compile with PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE and newline = LF.
base::Result<std::string> TranslateRegex(std::string_view pattern);

// A pattern that matches exactly this text: for {"String": ...} patterns.
std::string EscapeRegex(std::string_view literal);

}  // namespace halfbyte::text
