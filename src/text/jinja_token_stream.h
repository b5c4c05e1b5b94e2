// The parser's place in the tokens, and what its expression and statement halves share.
#pragma once

#include <string>
#include <vector>

#include "text/jinja_error.h"
#include "text/jinja_lexer.h"

namespace halfbyte::text::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Token& current() { return tokens_[at_]; }
  const Token& look() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  int line() { return current().line; }
  bool Is(TokenType type) { return current().type == type; }
  bool IsName(std::string_view name) { return Is(TokenType::kName) && current().text == name; }
  Token Next() { return at_ + 1 < tokens_.size() ? std::move(tokens_[at_++]) : tokens_[at_]; }
  bool Skip(TokenType type) { return Is(type) && (Next(), true); }
  bool SkipName(std::string_view name) { return IsName(name) && (Next(), true); }
  Token Expect(TokenType type) {
    if (!Is(type)) FailExpected(Describe(type));
    return Next();
  }
  void ExpectName(std::string_view name) {
    if (!SkipName(name)) FailExpected(name);
  }

 private:
  [[noreturn]] void FailExpected(std::string_view wanted) {
    if (Is(TokenType::kEnd)) FailSyntax(line(), "unexpected end of template, expected '", wanted, "'.");
    FailSyntax(line(), "expected token '", wanted, "', got '", Describe(current()), "'");
  }

  std::vector<Token> tokens_;  // the last is kEnd
  size_t at_ = 0;
};

// Counts the levels of a recursive descent: "((((" and "{% if %}{% if %}" nest only so far. jinja2 itself gives up at about
// 70 levels, where Python's recursion limit is.
class ParseDepth {
 public:
  ParseDepth(int& depth, int line) : depth_(depth) {
    constexpr int kMost = 200;
    if (depth >= kMost) FailSyntax(line, "the template nests deeper than ", kMost, " levels");
    ++depth_;
  }
  ~ParseDepth() { --depth_; }

 private:
  int& depth_;
};

}  // namespace halfbyte::text::jinja
