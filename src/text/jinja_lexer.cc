#include "text/jinja_lexer.h"

#include <algorithm>

#include "text/jinja_error.h"
#include "text/jinja_literal.h"
#include "text/jinja_unicode.h"

namespace halfbyte::text::jinja {
namespace {

struct Operator {
  std::string_view symbol;
  TokenType type;
};
// Longer ones first.
constexpr Operator kOperators[] = {
    {"//", TokenType::kFloorDiv}, {"**", TokenType::kPow}, {"==", TokenType::kEqual}, {"!=", TokenType::kNotEqual},
    {">=", TokenType::kGreaterEqual}, {"<=", TokenType::kLessEqual}, {"+", TokenType::kAdd}, {"-", TokenType::kSub},
    {"/", TokenType::kDiv}, {"*", TokenType::kMul}, {"%", TokenType::kMod}, {"~", TokenType::kTilde},
    {"[", TokenType::kLeftBracket}, {"]", TokenType::kRightBracket}, {"(", TokenType::kLeftParen},
    {")", TokenType::kRightParen}, {"{", TokenType::kLeftBrace}, {"}", TokenType::kRightBrace}, {">", TokenType::kGreater},
    {"<", TokenType::kLess}, {"=", TokenType::kAssign}, {".", TokenType::kDot}, {":", TokenType::kColon},
    {"|", TokenType::kPipe}, {",", TokenType::kComma}, {";", TokenType::kSemicolon},
};

// \r\n and \r become \n, as jinja does before anything else.
std::string NormalizeNewlines(std::string_view s, bool keep_trailing) {
  std::string out;
  out.reserve(s.size());
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] != '\r') { out += s[i]; continue; }
    out += '\n';
    if (i + 1 < s.size() && s[i + 1] == '\n') ++i;
  }
  if (!keep_trailing && out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  Lexer(std::string_view source, const JinjaOptions& options)
      : options_(options), source_(NormalizeNewlines(source, options.keep_trailing_newline)), rest_(source_) {}

  std::vector<Token> Run() {
    while (!rest_.empty()) Text();
    Add(TokenType::kEnd);
    return std::move(tokens_);
  }

 private:
  Token& Add(TokenType type, std::string text = {}) { return tokens_.emplace_back(Token{type, line_, std::move(text)}); }

  std::string_view Take(size_t n) {
    std::string_view taken = rest_.substr(0, n);
    line_ += static_cast<int>(std::count(taken.begin(), taken.end(), '\n'));
    if (n > 0) line_starting_ = taken.back() == '\n';
    rest_.remove_prefix(n);
    return taken;
  }
  void SkipSpace() { Take(rest_.size() - Strip(rest_, nullptr, true, false).size()); }

  // Data up to the next tag, then the tag.
  void Text() {
    size_t at = 0;
    while ((at = rest_.find('{', at)) != rest_.npos) {
      char next = at + 1 < rest_.size() ? rest_[at + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') break;
      ++at;
    }
    if (at == rest_.npos) { Data(rest_.size(), '+', false); return; }
    char kind = rest_[at + 1];
    char sign = at + 2 < rest_.size() ? rest_[at + 2] : '\0';
    if (sign != '-' && sign != '+') sign = 0;
    Data(at, sign, kind != '{');
    size_t opening = sign != 0 ? 3 : 2;
    if (kind == '%' && Raw(opening)) return;
    Take(opening);
    if (kind == '#') Comment();
    else Tag(kind == '%');
  }

  // Emits `size` bytes of data, stripped on the right as the sign of the following tag or lstrip_blocks wants it.
  void Data(size_t size, char sign, bool block) {
    bool line_starting = line_starting_;
    int line = line_;
    std::string_view text = Take(size);
    if (sign == '-') {
      text = Strip(text, nullptr, false, true);
    } else if (sign != '+' && options_.lstrip_blocks && block) {
      size_t newline = text.rfind('\n');
      size_t start = newline == text.npos ? 0 : newline + 1;
      if ((start > 0 || line_starting) && Strip(text.substr(start), nullptr, true, false).empty()) text = text.substr(0, start);
    }
    if (!text.empty()) tokens_.emplace_back(Token{TokenType::kData, line, std::string(text)});
  }

  // After the end of a tag: -%} eats white space, %} one newline (trim_blocks), +%} nothing.
  void AfterTag(char sign, bool block) {
    if (sign == '-') SkipSpace();
    else if (sign == 0 && block && options_.trim_blocks && rest_.starts_with('\n')) Take(1);
  }

  void Comment() {
    size_t end = rest_.find("#}");
    if (end == rest_.npos) {
      if (rest_.empty()) return;  // jinja2 lets a template end in "{#"
      FailSyntax(line_, "Missing end of comment tag");
    }
    char sign = end > 0 && (rest_[end - 1] == '-' || rest_[end - 1] == '+') ? rest_[end - 1] : '\0';
    Take(end + 2);
    AfterTag(sign, true);
  }

  // "{%- raw -%}" ... "{% endraw %}"; false where the tag at hand is another one.
  bool Raw(size_t opening) {
    std::string_view s = Strip(rest_.substr(opening), nullptr, true, false);
    if (!s.starts_with("raw")) return false;
    s = Strip(s.substr(3), nullptr, true, false);
    char sign = s.starts_with('-') ? '-' : '\0';
    if (sign != 0) s.remove_prefix(1);
    if (!s.starts_with("%}")) return false;
    Take(static_cast<size_t>(s.data() + 2 - rest_.data()));
    if (sign == '-') SkipSpace();
    for (size_t at = 0; (at = rest_.find("{%", at)) != rest_.npos; at += 2) {
      std::string_view tag = rest_.substr(at + 2);
      char begin = !tag.empty() && (tag[0] == '-' || tag[0] == '+') ? tag[0] : '\0';
      if (begin != 0) tag.remove_prefix(1);
      tag = Strip(tag, nullptr, true, false);
      if (!tag.starts_with("endraw")) continue;
      tag = Strip(tag.substr(6), nullptr, true, false);
      char end = !tag.empty() && (tag[0] == '-' || tag[0] == '+') ? tag[0] : '\0';
      if (end != 0) tag.remove_prefix(1);
      if (!tag.starts_with("%}")) continue;
      size_t after = static_cast<size_t>(tag.data() + 2 - rest_.data());
      Data(at, begin, true);
      Take(after - at);
      AfterTag(end, true);
      return true;
    }
    if (rest_.empty()) return true;
    FailSyntax(line_, "Missing end of raw directive");
  }

  void Tag(bool block) {
    Add(block ? TokenType::kBlockBegin : TokenType::kVariableBegin);
    std::string_view end = block ? "%}" : "}}";
    std::string closing;  // the brackets that are open; inside them the end of the tag is not looked for
    for (;;) {
      if (closing.empty() && TagEnd(end, block)) return;
      if (rest_.empty()) return;  // the parser says what is missing
      OneToken(closing);
    }
  }

  bool TagEnd(std::string_view end, bool block) {
    char sign = rest_.starts_with('-') ? '-' : block && rest_.starts_with('+') ? '+' : '\0';
    if (!rest_.substr(sign != 0).starts_with(end)) return false;
    Add(block ? TokenType::kBlockEnd : TokenType::kVariableEnd);
    Take((sign != 0) + end.size());
    AfterTag(sign, block);
    return true;
  }

  void OneToken(std::string& closing) {
    size_t n = 0;
    uint32_t code = DecodeAt(rest_, 0, n);
    if (IsSpace(code)) { SkipSpace(); return; }
    bool after_dot = rest_.data() > source_.data() && rest_.data()[-1] == '.';
    if (size_t size = FloatLength(rest_, after_dot); size > 0) {
      Add(TokenType::kFloat).real = ParseFloatLiteral(rest_.substr(0, size));
      Take(size);
    } else if (size = IntegerLength(rest_); size > 0) {
      Add(TokenType::kInteger).integer = ParseIntegerLiteral(rest_.substr(0, size), line_);
      Take(size);
    } else if (IsIdentifierPart(code)) {
      Name(code);
    } else if (code == '\'' || code == '"') {
      String();
    } else {
      Punctuation(closing);
    }
  }

  void Name(uint32_t first) {
    size_t size = 0, n = 0;
    while (size < rest_.size() && IsIdentifierPart(DecodeAt(rest_, size, n))) size += n;
    if (!IsIdentifierStart(first)) FailSyntax(line_, "Invalid character in identifier");
    Add(TokenType::kName, std::string(rest_.substr(0, size)));
    Take(size);
  }

  void String() {
    size_t end = 1;
    while (end < rest_.size() && rest_[end] != rest_[0]) end += rest_[end] == '\\' ? 2 : 1;
    if (end >= rest_.size()) FailSyntax(line_, "unexpected char '", rest_[0], "': the string has no end");
    Add(TokenType::kString, UnescapeLiteral(rest_.substr(1, end - 1), line_));
    Take(end + 1);
  }

  void Punctuation(std::string& closing) {
    for (const Operator& op : kOperators) {
      if (!rest_.starts_with(op.symbol)) continue;
      char c = op.symbol.size() == 1 ? op.symbol[0] : '\0';
      if (c == '(') closing += ')';
      else if (c == '[') closing += ']';
      else if (c == '{') closing += '}';
      else if (c == ')' || c == ']' || c == '}') {
        if (closing.empty()) FailSyntax(line_, "unexpected '", c, "'");
        if (closing.back() != c) FailSyntax(line_, "unexpected '", c, "', expected '", closing.back(), "'");
        closing.pop_back();
      }
      Add(op.type);
      Take(op.symbol.size());
      return;
    }
    size_t n = 0;
    DecodeAt(rest_, 0, n);
    FailSyntax(line_, "unexpected char '", rest_.substr(0, n), "'");
  }

  const JinjaOptions& options_;
  std::string source_;
  std::string_view rest_;
  std::vector<Token> tokens_;
  int line_ = 1;
  bool line_starting_ = true;
};

}  // namespace

std::string_view Describe(TokenType type) {
  switch (type) {
    case TokenType::kData: return "template data / text";
    case TokenType::kVariableBegin: return "begin of print statement";
    case TokenType::kVariableEnd: return "end of print statement";
    case TokenType::kBlockBegin: return "begin of statement block";
    case TokenType::kBlockEnd: return "end of statement block";
    case TokenType::kName: return "name";
    case TokenType::kString: return "string";
    case TokenType::kInteger: return "integer";
    case TokenType::kFloat: return "float";
    case TokenType::kEnd: return "end of template";
    default: break;
  }
  for (const Operator& op : kOperators) {
    if (op.type == type) return op.symbol;
  }
  return "token";
}

std::string Describe(const Token& token) {
  return token.type == TokenType::kName ? token.text : std::string(Describe(token.type));
}

std::vector<Token> Tokenize(std::string_view source, const JinjaOptions& options) { return Lexer(source, options).Run(); }

}  // namespace halfbyte::text::jinja
