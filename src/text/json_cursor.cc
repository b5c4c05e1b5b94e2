#include "text/json_cursor.h"

#include <charconv>

#include "text/unicode.h"

namespace halfbyte::text {

using base::ErrorCode;
using base::Fail;
using base::Result;
using base::Status;

tl::unexpected<base::Error> JsonCursor::Bad(std::string_view what) const {
  return Fail(ErrorCode::kBadFile, "not valid JSON: byte ", at_, ": ", what);
}

char JsonCursor::Peek() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
  return at_ < text_.size() ? text_[at_] : '\0';
}

Status JsonCursor::Expect(char c) {
  if (Peek() != c || at_ == text_.size()) return Bad(base::StrCat("'", c, "' is missing"));
  ++at_;
  return {};
}

Status JsonCursor::End() {
  Peek();
  return at_ == text_.size() ? Status{} : Bad("something follows the end");
}

Result<std::string_view> JsonCursor::String(std::string& buffer) {
  HB_RETURN_IF_ERROR(Expect('"'));
  size_t begin = at_;
  for (; at_ < text_.size(); ++at_) {
    unsigned char c = static_cast<unsigned char>(text_[at_]);
    if (c == '"') return text_.substr(begin, at_++ - begin);
    if (c == '\\') return Unescape(begin, buffer);
    if (c < 0x20) return Bad("a control character in a string");
  }
  return Bad("a string does not end");
}

Result<std::string_view> JsonCursor::Unescape(size_t begin, std::string& buffer) {
  buffer = text_.substr(begin, at_ - begin);
  while (at_ < text_.size() && text_[at_] != '"') {
    char c = text_[at_++];
    if (static_cast<unsigned char>(c) < 0x20) return Bad("a control character in a string");
    if (c != '\\') { buffer.push_back(c); continue; }
    char escape = at_ < text_.size() ? text_[at_++] : '\0';
    switch (escape) {
      case '"': case '\\': case '/': buffer.push_back(escape); break;
      case 'b': buffer.push_back('\b'); break;
      case 'f': buffer.push_back('\f'); break;
      case 'n': buffer.push_back('\n'); break;
      case 'r': buffer.push_back('\r'); break;
      case 't': buffer.push_back('\t'); break;
      case 'u': {
        HB_ASSIGN_OR_RETURN(char32_t code, FourDigits());
        if (code >= 0xD800 && code < 0xDC00) {
          if (text_.substr(at_, 2) != "\\u") return Bad("half a surrogate pair");
          at_ += 2;
          HB_ASSIGN_OR_RETURN(char32_t low, FourDigits());
          if (low < 0xDC00 || low > 0xDFFF) return Bad("half a surrogate pair");
          code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        } else if (code >= 0xDC00 && code < 0xE000) {
          return Bad("half a surrogate pair");
        }
        AppendUtf8(buffer, code);
        break;
      }
      default: return Bad("an unknown escape");
    }
  }
  if (at_ == text_.size()) return Bad("a string does not end");
  ++at_;
  return std::string_view(buffer);
}

Result<char32_t> JsonCursor::FourDigits() {
  uint32_t code = 0;
  std::string_view digits = text_.substr(at_, 4);
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  if (digits.size() < 4 || error != std::errc() || end != digits.data() + 4) return Bad("\\u wants four hex digits");
  at_ += 4;
  return static_cast<char32_t>(code);
}

Result<int64_t> JsonCursor::Integer() {
  Peek();
  int64_t value = 0;
  auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
  if (error != std::errc()) return Bad("an integer is wanted");
  at_ = static_cast<size_t>(end - text_.data());
  if (char c = at_ < text_.size() ? text_[at_] : '\0'; c == '.' || c == 'e' || c == 'E') return Bad("an integer is wanted");
  return value;
}

Result<std::string_view> JsonCursor::Skip() {
  Peek();
  size_t begin = at_;
  int depth = 0;
  for (; at_ < text_.size(); ++at_) {
    char c = text_[at_];
    if (c == '"') {
      for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) if (text_[at_] == '\\') ++at_;
      if (at_ >= text_.size()) return Bad("a string does not end");
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxDepth) return Bad(base::StrCat("nested deeper than ", kMaxDepth));
    } else if (c == '}' || c == ']') {
      if (depth == 0) break;  // closes what surrounds a bare number or word
      if (--depth == 0) { ++at_; break; }
      continue;
    } else if (depth == 0 && c == ',') {
      break;
    }
    if (depth == 0 && c == '"') { ++at_; break; }
  }
  if (depth != 0) return Bad("a bracket is not closed");
  if (at_ == begin) return Bad("a value is missing");
  return text_.substr(begin, at_ - begin);
}

}  // namespace halfbyte::text
