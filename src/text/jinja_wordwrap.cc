#include "text/jinja_wordwrap.h"

#include <algorithm>
#include <cstdint>

#include "text/jinja_unicode.h"

namespace halfbyte::text::jinja {
namespace {

using Codes = std::u32string;

bool IsWrapSpace(char32_t c) { return c == ' ' || (c >= 9 && c <= 13); }  // textwrap knows ASCII space only
bool IsWord(char32_t c) { return IsAlnum(c) || c == '_'; }
bool IsLetter(char32_t c) { return IsWord(c) && !IsDecimal(c); }
bool IsWordPunctuation(char32_t c) { return IsWord(c) || std::u32string_view(U"!\"'&.,?").find(c) != std::u32string_view::npos; }

// Whether a chunk may end behind the hyphen at i: "ab-" or "a-b-" before it and two letters (perhaps hyphenated) after it.
bool BreaksAfterHyphen(const Codes& s, size_t i) {
  bool before = (i >= 2 && IsLetter(s[i - 1]) && IsLetter(s[i - 2])) ||
                (i >= 3 && IsWordPunctuation(s[i - 1]) && s[i - 2] == '-' && IsLetter(s[i - 3]));
  if (!before || i + 1 >= s.size() || !IsLetter(s[i + 1])) return false;
  size_t next = i + 2 < s.size() && s[i + 2] == '-' ? i + 3 : i + 2;
  return next < s.size() && IsLetter(s[next]);
}

// How many hyphens at i form a dash between words; 0 for less than two or where no word follows.
size_t DashAt(const Codes& s, size_t i) {
  size_t n = 0;
  while (i + n < s.size() && s[i + n] == '-') ++n;
  bool dash = n >= 2 && i > 0 && IsWordPunctuation(s[i - 1]) && i + n < s.size() && IsWord(s[i + n]);
  return dash ? n : 0;
}

size_t ChunkEnd(const Codes& s, size_t start) {
  size_t i = start;
  if (IsWrapSpace(s[i])) {
    while (i < s.size() && IsWrapSpace(s[i])) ++i;
    return i;
  }
  if (size_t dash = DashAt(s, i); dash > 0) return i + dash;
  for (++i; i < s.size(); ++i) {
    if (IsWrapSpace(s[i]) || DashAt(s, i) > 0) return i;
    if (s[i - 1] == '-' && i - 1 > start && BreaksAfterHyphen(s, i - 1)) return i;
  }
  return i;
}

std::vector<Codes> Chunks(const Codes& s, bool break_on_hyphens) {
  std::vector<Codes> chunks;
  for (size_t i = 0; i < s.size();) {
    size_t end = i;
    if (break_on_hyphens) {
      end = ChunkEnd(s, i);
    } else {
      while (end < s.size() && IsWrapSpace(s[end]) == IsWrapSpace(s[i])) ++end;
    }
    chunks.push_back(s.substr(i, end - i));
    i = end;
  }
  return chunks;
}

bool IsBlank(const Codes& s) { return std::all_of(s.begin(), s.end(), [](char32_t c) { return IsSpace(c); }); }

// Puts what fits of a chunk that is longer than a line on this one.
void TakeLongWord(Codes& chunk, std::vector<Codes>& chunks, std::vector<Codes>& line, size_t room, bool break_long_words,
                  bool break_on_hyphens) {
  if (!break_long_words) {
    if (!line.empty()) return;
    line.push_back(chunk);
    chunks.pop_back();
    return;
  }
  size_t end = room;
  if (break_on_hyphens && room > 0) {
    size_t hyphen = chunk.rfind('-', room - 1);
    if (hyphen != Codes::npos && hyphen > 0 && chunk.find_first_not_of('-') < hyphen) end = hyphen + 1;
  }
  line.push_back(chunk.substr(0, end));
  chunk.erase(0, end);
}

std::string Join(const std::vector<Codes>& line) {
  std::string out;
  for (const Codes& chunk : line) {
    for (char32_t c : chunk) AppendUtf8(out, c);
  }
  return out;
}

}  // namespace

std::vector<std::string> WrapText(std::string_view paragraph, int64_t width, bool break_long_words, bool break_on_hyphens) {
  Codes codes;
  for (size_t i = 0, n = 0; i < paragraph.size(); i += n) codes += static_cast<char32_t>(DecodeAt(paragraph, i, n));
  std::vector<Codes> chunks = Chunks(codes, break_on_hyphens);
  std::reverse(chunks.begin(), chunks.end());
  auto most = static_cast<size_t>(width);
  std::vector<std::string> lines;
  while (!chunks.empty()) {
    std::vector<Codes> line;
    size_t size = 0;
    if (IsBlank(chunks.back()) && !lines.empty()) chunks.pop_back();
    while (!chunks.empty() && size + chunks.back().size() <= most) {
      size += chunks.back().size();
      line.push_back(std::move(chunks.back()));
      chunks.pop_back();
    }
    if (!chunks.empty() && chunks.back().size() > most) {
      TakeLongWord(chunks.back(), chunks, line, most - size, break_long_words, break_on_hyphens);
    }
    if (!line.empty() && IsBlank(line.back())) line.pop_back();
    if (!line.empty()) lines.push_back(Join(line));
  }
  return lines;
}

}  // namespace halfbyte::text::jinja
