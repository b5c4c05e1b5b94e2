// Sets of Unicode code points as byte grammars: what a class of a regular expression means in UTF-8, plain or inside a JSON string.
#pragma once

#include <cstdint>
#include <vector>

#include "text/grammar.h"

namespace halfbyte::text {

struct CodePointRange {
  uint32_t low = 0, high = 0;
  friend bool operator==(const CodePointRange&, const CodePointRange&) = default;
};

// Sorted, disjoint, without surrogates (they have no UTF-8).
class CodePoints {
 public:
  CodePoints() = default;
  explicit CodePoints(std::vector<CodePointRange> ranges);
  static CodePoints All() { return CodePoints({{0, 0x10FFFF}}); }

  CodePoints Complement() const;
  void Add(const CodePoints& other);
  CodePoints Without(const CodePoints& other) const;
  bool Contains(uint32_t c) const;
  bool empty() const { return ranges_.empty(); }
  const std::vector<CodePointRange>& ranges() const { return ranges_; }

 private:
  std::vector<CodePointRange> ranges_;
};

// One code point of a non-empty set, as UTF-8.
GrammarBuilder::Expr Utf8Expr(GrammarBuilder& builder, const CodePoints& set);

// One code point of a non-empty set between the quotes of a JSON string: itself where JSON allows that; " \ and control characters by their escapes
// (the short one, or \u00XX where there is none).
GrammarBuilder::Expr JsonStringExpr(GrammarBuilder& builder, const CodePoints& set);

}  // namespace halfbyte::text
