// Regular expressions as grammars, for structured output: the part of ECMAScript's and Python's syntax that describes a regular language.
//
// Taken: literals, ., classes with ranges and negation, \d \w \s \D \W \S (ASCII sets), \n \t \r \f \v \0 \xHH \uHHHH \u{H..}, escaped punctuation, groups
// ((...), (?:...), (?<name>...)), |, * + ? {m} {m,} {m,n} and their lazy forms (the language is the same), ^ at the very beginning and $ at
// the very end of the whole or of an alternative of the whole. Everything else (\b, \p, back references, look-around, flags) is refused by name.
#pragma once

#include <functional>
#include <string_view>

#include "base/result.h"
#include "text/code_points.h"
#include "text/grammar.h"

namespace halfbyte::text {

enum class RegexMatch : uint8_t {
  kWhole,   // the answer is what the expression matches, as if it stood between ^ and $
  kSearch,  // JSON Schema's `pattern`: a match somewhere; open ends are filled with any characters
};

// encode: one code point of a set, as the answer holds it (Utf8Expr, JsonStringExpr). `.` is any character but line ends, as in both languages.
base::Result<GrammarBuilder::Expr> RegexExpr(GrammarBuilder& builder, std::string_view pattern, RegexMatch match,
                                             const std::function<GrammarBuilder::Expr(GrammarBuilder&, const CodePoints&)>& encode);

// A grammar whose rule 0 is the expression, kWhole, in UTF-8.
base::Result<Grammar> RegexGrammar(std::string_view pattern);

}  // namespace halfbyte::text
