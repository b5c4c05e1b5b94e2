// The "added_tokens" of a tokenizer.json: tokens that are found in the text as they stand, before the model sees it.
//
// There are two rounds. Tokens with "normalized": false are looked for in the text as given; the pieces between them are normalized, and
// then those with "normalized": true are looked for in what came out. Of several that start at one place the longest wins.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/normalizer.h"
#include "text/vocabulary.h"

namespace halfbyte::text {

struct AddedToken {
  int32_t id;
  std::string content;
  std::string shown;   // what it decodes to: the content, normalized where "normalized" says so, as the reference does
  bool single_word;  // only where no word character stands on either side
  bool lstrip;       // takes the blanks before it along
  bool rstrip;       // and those after it
  bool normalized;
  bool special;      // left out by skip_special_tokens
};

// A set of texts of which the longest at a place is wanted.
class PatternSet {
 public:
  PatternSet() = default;
  // Of equal texts the earlier wins. Empty texts are left out.
  explicit PatternSet(const std::vector<std::pair<std::string, const AddedToken*>>& patterns);

  struct Match { size_t begin, end; const AddedToken* token; };
  // The first match at or after `from`; false where there is none.
  bool Search(std::string_view text, size_t from, Match* match) const;

 private:
  const AddedToken* LongestAt(std::string_view text, size_t* length) const;

  std::vector<std::pair<std::string, const AddedToken*>> sorted_;
  std::array<bool, 256> starts_{};  // bytes that a text begins with
  int only_start_ = -1;             // the byte, where all begin with the same
};

class AddedTokens {
 public:
  // A token whose content the model's vocabulary holds has the id it has there; any other has the file's.
  static base::Result<AddedTokens> FromJson(const base::Json* json, const Vocabulary& vocabulary, const Normalizer& normalizer);

  // Calls sink(begin, end, token) for every token that is found and every stretch of text between them (token is nullptr), in order.
  // normalized: which of the two rounds.
  template <typename Sink>
  void Split(std::string_view text, bool normalized, Sink sink) const {
    const PatternSet& set = normalized ? in_normalized_ : in_given_;
    size_t done = 0, from = 0;
    for (PatternSet::Match m{}; set.Search(text, from, &m); from = m.end) {
      if (m.token->single_word && !IsSingleWord(text, m.begin, m.end)) continue;
      size_t begin = m.token->lstrip ? std::max(StripLeft(text, m.begin), done) : m.begin;
      size_t end = m.token->rstrip ? StripRight(text, m.end) : m.end;
      if (done < begin) sink(done, begin, nullptr);
      sink(begin, end, m.token);
      done = end;
    }
    if (done < text.size()) sink(done, text.size(), nullptr);
  }

  const AddedToken* Find(int32_t id) const;
  const AddedToken* Find(std::string_view content) const;
  int32_t size() const { return static_cast<int32_t>(by_id_.size()); }  // highest id + 1
  bool IsSpecial(std::string_view content) const;

 private:
  static bool IsSingleWord(std::string_view text, size_t begin, size_t end);
  static size_t StripLeft(std::string_view text, size_t begin);
  static size_t StripRight(std::string_view text, size_t end);

  std::vector<std::unique_ptr<AddedToken>> tokens_;
  std::vector<int32_t> by_id_;  // index into tokens_, or -1
  Vocabulary by_content_;       // content to index into tokens_
  PatternSet in_given_, in_normalized_;
};

}  // namespace halfbyte::text
