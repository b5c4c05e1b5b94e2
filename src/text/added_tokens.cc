#include "text/added_tokens.h"

#include <algorithm>
#include <cstring>

#include "text/unicode.h"

namespace halfbyte::text {

using base::ErrorCode;
using base::Fail;
using base::Json;
using base::Result;

PatternSet::PatternSet(const std::vector<std::pair<std::string, const AddedToken*>>& patterns) {
  for (const auto& p : patterns) if (!p.first.empty()) sorted_.push_back(p);
  std::stable_sort(sorted_.begin(), sorted_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  sorted_.erase(std::unique(sorted_.begin(), sorted_.end(), [](const auto& a, const auto& b) { return a.first == b.first; }),
                sorted_.end());
  for (const auto& p : sorted_) starts_[static_cast<unsigned char>(p.first[0])] = true;
  if (std::count(starts_.begin(), starts_.end(), true) == 1) only_start_ = static_cast<unsigned char>(sorted_[0].first[0]);
}

// Narrows the sorted texts to those that agree with the text so far, byte by byte; a text that ends there is a match.
const AddedToken* PatternSet::LongestAt(std::string_view text, size_t* length) const {
  auto low = sorted_.begin(), high = sorted_.end();
  const AddedToken* best = nullptr;
  for (size_t depth = 0; depth < text.size(); ++depth) {
    auto byte_of = [depth](const auto& p) {
      return depth < p.first.size() ? static_cast<int>(static_cast<unsigned char>(p.first[depth])) : -1;
    };
    int wanted = static_cast<unsigned char>(text[depth]);
    low = std::partition_point(low, high, [&](const auto& p) { return byte_of(p) < wanted; });
    high = std::partition_point(low, high, [&](const auto& p) { return byte_of(p) <= wanted; });
    if (low == high) break;
    if (low->first.size() == depth + 1) { best = low->second; *length = depth + 1; }
  }
  return best;
}

bool PatternSet::Search(std::string_view text, size_t from, Match* match) const {
  if (sorted_.empty()) return false;
  for (size_t at = from; at < text.size(); ++at) {
    if (only_start_ >= 0) {
      const void* found = std::memchr(text.data() + at, only_start_, text.size() - at);
      if (found == nullptr) return false;
      at = static_cast<size_t>(static_cast<const char*>(found) - text.data());
    } else if (!starts_[static_cast<unsigned char>(text[at])]) {
      continue;
    }
    size_t length = 0;
    if (const AddedToken* token = LongestAt(text.substr(at), &length)) {
      *match = {at, at + length, token};
      return true;
    }
  }
  return false;
}

Result<AddedTokens> AddedTokens::FromJson(const Json* json, const Vocabulary& vocabulary, const Normalizer& normalizer) {
  AddedTokens added;
  if (json == nullptr || json->is_null()) return added;
  if (!json->is_array()) return Fail(ErrorCode::kBadFile, "\"added_tokens\" is no list");
  for (const Json& row : json->as_array()) {
    auto token = std::make_unique<AddedToken>();
    HB_ASSIGN_OR_RETURN_AT(int64_t id, row.GetInt("id"), "\"added_tokens\"");
    HB_ASSIGN_OR_RETURN_AT(token->content, row.GetString("content"), "\"added_tokens\"");
    HB_ASSIGN_OR_RETURN_AT(token->special, row.GetBoolOr("special", false), "\"added_tokens\"");
    HB_ASSIGN_OR_RETURN_AT(token->normalized, row.GetBoolOr("normalized", !token->special), "\"added_tokens\"");
    HB_ASSIGN_OR_RETURN_AT(token->single_word, row.GetBoolOr("single_word", false), "\"added_tokens\"");
    HB_ASSIGN_OR_RETURN_AT(token->lstrip, row.GetBoolOr("lstrip", false), "\"added_tokens\"");
    HB_ASSIGN_OR_RETURN_AT(token->rstrip, row.GetBoolOr("rstrip", false), "\"added_tokens\"");
    if (id < 0 || id > Vocabulary::kMaxId)
      return Fail(ErrorCode::kBadFile, "\"added_tokens\": the id ", id, " is not between 0 and ", Vocabulary::kMaxId);
    if (token->content.empty()) continue;
    int32_t in_model = vocabulary.Find(token->content);
    token->id = in_model >= 0 ? in_model : static_cast<int32_t>(id);
    if (static_cast<size_t>(token->id) >= added.by_id_.size()) added.by_id_.resize(static_cast<size_t>(token->id) + 1, -1);
    int32_t index = static_cast<int32_t>(added.tokens_.size());
    added.by_id_[static_cast<size_t>(token->id)] = index;
    added.by_content_.Add(token->content, index);
    added.tokens_.push_back(std::move(token));
  }

  std::vector<std::pair<std::string, const AddedToken*>> given, normalized;
  std::string buffer;
  for (bool special : {true, false}) {
    for (const auto& token : added.tokens_) {
      if (token->special != special) continue;
      token->shown = token->normalized ? normalizer.Apply(token->content, buffer) : token->content;
      (token->normalized ? normalized : given).emplace_back(token->shown, token.get());
    }
  }
  added.in_given_ = PatternSet(given);
  added.in_normalized_ = PatternSet(normalized);
  return added;
}

const AddedToken* AddedTokens::Find(int32_t id) const {
  if (id < 0 || static_cast<size_t>(id) >= by_id_.size() || by_id_[static_cast<size_t>(id)] < 0) return nullptr;
  return tokens_[static_cast<size_t>(by_id_[static_cast<size_t>(id)])].get();
}

const AddedToken* AddedTokens::Find(std::string_view content) const {
  int32_t index = by_content_.Find(content);
  return index < 0 ? nullptr : tokens_[static_cast<size_t>(index)].get();
}

bool AddedTokens::IsSpecial(std::string_view content) const {
  const AddedToken* token = Find(content);
  return token != nullptr && token->special;
}

bool AddedTokens::IsSingleWord(std::string_view text, size_t begin, size_t end) {
  bool word_before = begin > 0 && IsRustWord(DecodeBefore(text.data() + begin).code);
  bool word_after = end < text.size() && IsRustWord(DecodeValid(text.data() + end).code);
  return !word_before && !word_after;
}

size_t AddedTokens::StripLeft(std::string_view text, size_t begin) {
  while (begin > 0) {
    Decoded d = DecodeBefore(text.data() + begin);
    if (!IsWhitespace(d.code)) break;
    begin -= d.size;
  }
  return begin;
}

size_t AddedTokens::StripRight(std::string_view text, size_t end) {
  while (end < text.size()) {
    Decoded d = DecodeValid(text.data() + end);
    if (!IsWhitespace(d.code)) break;
    end += d.size;
  }
  return end;
}

}  // namespace halfbyte::text
