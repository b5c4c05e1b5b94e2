// Template text to tokens, with white space control already applied to the text between the tags.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/jinja.h"
#include "text/jinja_value.h"

namespace halfbyte::text::jinja {

enum class TokenType {
  kData, kVariableBegin, kVariableEnd, kBlockBegin, kBlockEnd, kName, kString, kInteger, kFloat,
  kAdd, kSub, kDiv, kFloorDiv, kMul, kMod, kPow, kTilde, kLeftBracket, kRightBracket, kLeftParen, kRightParen, kLeftBrace,
  kRightBrace, kEqual, kNotEqual, kGreater, kGreaterEqual, kLess, kLessEqual, kAssign, kDot, kColon, kPipe, kComma, kSemicolon,
  kEnd,
};

struct Token {
  TokenType type;
  int line;
  std::string text;  // of data, names and (unescaped) strings
  Int integer = 0;
  double real = 0;
};

// How a token is called in a message: a name's text, an operator's symbol, "end of print statement", ...
std::string Describe(const Token& token);
std::string_view Describe(TokenType type);

// Throws TemplateError. The last token is kEnd.
std::vector<Token> Tokenize(std::string_view source, const JinjaOptions& options);

}  // namespace halfbyte::text::jinja
