// A compiled regular expression of a tokenizer.json, on PCRE2 with its JIT compiler.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "base/result.h"

namespace halfbyte::text {

class Regex {
 public:
  // The pattern as the file has it; see regex_translate.h.
  static base::Result<Regex> Compile(std::string_view pattern);
  static base::Result<Regex> CompileLiteral(std::string_view text);

  struct Match { size_t begin, end; };
  // The first match at or after `from` in valid UTF-8; false where there is none. Thread-safe.
  //
  // A search that would take more than kMatchLimit steps counts as "none". The patterns of published tokenizers are linear and stay
  // far below it on any text; only a pattern that backtracks exponentially gets there, and then an answer is better than a hung server.
  bool Search(std::string_view text, size_t from, Match* match) const;

  // Calls sink(begin, end, is_match) for the matches and for the text between them, in order, without empty gaps. An empty match
  // right after a match is skipped, so that the walk ends. An empty text has no parts and no matches.
  template <typename Sink>
  void Walk(std::string_view text, Sink sink) const {
    if (text.empty()) return;
    size_t gap = 0, from = 0, last_end = kNone;
    for (Match m{}; from <= text.size() && Search(text, from, &m);) {
      if (m.begin == m.end && m.end == last_end) { from = NextCharacter(text, m.end); continue; }
      if (gap < m.begin) sink(gap, m.begin, false);
      sink(m.begin, m.end, true);
      gap = from = last_end = m.end;
    }
    if (gap < text.size()) sink(gap, text.size(), false);
  }

  static constexpr unsigned kMatchLimit = 50'000'000;

 private:
  struct Code;
  static constexpr size_t kNone = static_cast<size_t>(-1);
  static size_t NextCharacter(std::string_view text, size_t at);
  static base::Result<Regex> CompileTranslated(std::string_view translated, std::string_view original);
  std::shared_ptr<const Code> code_;
};

}  // namespace halfbyte::text
