// The pattern of a Split step: what divides a text into the pieces that become tokens separately.
//
// The patterns of the common model families are recognised by their text and run as hand-written scanners, some ten times as fast as
// the JIT-compiled regular expression and linear on any text; split_pattern_test.cc proves them equal to it on random text. Every other
// pattern runs on PCRE2, a literal by searching for it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/regex.h"

namespace halfbyte::text {

// Where the piece that starts at `at` ends, and whether it matches the pattern; neighbouring pieces that do not match belong together.
struct ScannedPiece { const char* end; bool is_match; };
using Scanner = ScannedPiece (*)(const char* at, const char* end);

// The scanner for a pattern, or nullptr.
Scanner FindScanner(std::string_view pattern);

class SplitPattern {
 public:
  static base::Result<SplitPattern> FromRegex(std::string_view pattern);
  static base::Result<SplitPattern> FromLiteral(std::string_view text);
  static SplitPattern FromScanner(Scanner scanner);

  // sink(begin, end, is_match) for every match and every gap between matches, in order. The text is valid UTF-8.
  template <typename Sink>
  void Walk(std::string_view text, Sink sink) const {
    if (scanner_ != nullptr) WalkScanner(text, sink);
    else if (regex_) regex_->Walk(text, sink);
    else WalkLiteral(text, sink);
  }

 private:
  template <typename Sink>
  void WalkScanner(std::string_view text, Sink sink) const {
    const char *start = text.data(), *end = start + text.size(), *gap = nullptr;
    for (const char* at = start; at < end;) {
      ScannedPiece piece = scanner_(at, end);
      if (piece.is_match) {
        if (gap != nullptr) sink(static_cast<size_t>(gap - start), static_cast<size_t>(at - start), false);
        gap = nullptr;
        sink(static_cast<size_t>(at - start), static_cast<size_t>(piece.end - start), true);
      } else if (gap == nullptr) {
        gap = at;
      }
      at = piece.end;
    }
    if (gap != nullptr) sink(static_cast<size_t>(gap - start), text.size(), false);
  }
  template <typename Sink>
  void WalkLiteral(std::string_view text, Sink sink) const {
    size_t from = 0;
    for (size_t at; (at = text.find(literal_, from)) != text.npos; from = at + literal_.size()) {
      if (from < at) sink(from, at, false);
      sink(at, at + literal_.size(), true);
    }
    if (from < text.size()) sink(from, text.size(), false);
  }

  Scanner scanner_ = nullptr;
  std::optional<Regex> regex_;
  std::string literal_;  // when both others are absent; not empty
};

}  // namespace halfbyte::text
