// A set of code points as sorted, disjoint ranges: what a character class of a regular expression means.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/unicode.h"

namespace halfbyte::text {

class CodeSet {
 public:
  CodeSet() = default;
  explicit CodeSet(std::span<const CodeRange> ranges) { AddAll(ranges); }

  void Add(char32_t first, char32_t last);
  void AddAll(std::span<const CodeRange> ranges) { for (const CodeRange& r : ranges) Add(r.first, r.last); }
  void AddAll(const CodeSet& other) { AddAll(other.ranges()); }
  void IntersectWith(const CodeSet& other);
  CodeSet Complement() const;  // of U+0000 to U+10FFFF, surrogates left out

  // Sorted and merged; sorts on first use after an Add.
  std::span<const CodeRange> ranges() const;
  bool Contains(char32_t code) const;

 private:
  mutable std::vector<CodeRange> ranges_;
  mutable bool sorted_ = true;
};

// "L", "Lu", "Letter", "^Nd", "Han", "Alphabetic" ... as between the braces of \p{...}; spaces, '-', '_' and case do not matter.
base::Result<CodeSet> NamedSet(std::string_view name);
// 's', 'd', 'w', 'h' (hex digit) as in \s; \w outside brackets has six Latin-1 numbers more than inside.
CodeSet ShorthandSet(char letter, bool in_brackets);
// "alpha", "digit", ... as in [[:alpha:]].
base::Result<CodeSet> PosixSet(std::string_view name);

}  // namespace halfbyte::text
