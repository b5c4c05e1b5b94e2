// The innermost of expressions: names, literals, lists, dicts, tuples, and what may be assigned to.
#include "text/jinja_parse_expression.h"

namespace halfbyte::text::jinja {

ExprPtr ExpressionParser::Primary(bool with_namespace) {
  int line = stream_.line();
  switch (stream_.current().type) {
    case TokenType::kName: return NameOrKeyword(with_namespace);
    case TokenType::kString: {
      std::string text;
      while (stream_.Is(TokenType::kString)) text += stream_.Next().text;  // 'a' 'b' is one literal
      return std::make_unique<ConstExpr>(line, std::move(text));
    }
    case TokenType::kInteger: return std::make_unique<ConstExpr>(line, Value::Integer(stream_.Next().integer));
    case TokenType::kFloat: return std::make_unique<ConstExpr>(line, Value::Float(stream_.Next().real));
    case TokenType::kLeftParen: return Parenthesised();
    case TokenType::kLeftBracket: return List();
    case TokenType::kLeftBrace: return Dict();
    default: FailSyntax(line, "unexpected '", Describe(stream_.current()), "'");
  }
}

ExprPtr ExpressionParser::NameOrKeyword(bool with_namespace) {
  Token token = stream_.Next();
  const std::string& name = token.text;
  if (name == "true" || name == "True") return std::make_unique<ConstExpr>(token.line, Value::Bool(true));
  if (name == "false" || name == "False") return std::make_unique<ConstExpr>(token.line, Value::Bool(false));
  if (name == "none" || name == "None") return std::make_unique<ConstExpr>(token.line, Value::None());
  if (with_namespace && stream_.Skip(TokenType::kDot)) {
    return std::make_unique<NamespaceItemExpr>(token.line, name, stream_.Expect(TokenType::kName).text);
  }
  return std::make_unique<NameExpr>(token.line, name);
}

ExprPtr ExpressionParser::Parenthesised() {
  stream_.Next();
  ExprPtr node = TupleOf(true, false, true, false);
  stream_.Expect(TokenType::kRightParen);
  return node;
}

ExprPtr ExpressionParser::List() {
  auto node = std::make_unique<ItemsExpr>(ExprKind::kList, stream_.Next().line);
  while (!stream_.Is(TokenType::kRightBracket)) {
    if (!node->items.empty()) stream_.Expect(TokenType::kComma);
    if (stream_.Is(TokenType::kRightBracket)) break;
    node->items.push_back(Expression());
    Contain(*node, node->items.back());
  }
  stream_.Next();
  return node;
}

ExprPtr ExpressionParser::Dict() {
  auto node = std::make_unique<DictExpr>(stream_.Next().line);
  while (!stream_.Is(TokenType::kRightBrace)) {
    if (!node->items.empty()) stream_.Expect(TokenType::kComma);
    if (stream_.Is(TokenType::kRightBrace)) break;
    ExprPtr key = Expression();
    stream_.Expect(TokenType::kColon);
    ExprPtr value = Expression();
    Contain(*node, key);
    Contain(*node, value);
    node->items.emplace_back(std::move(key), std::move(value));
  }
  stream_.Next();
  return node;
}

bool ExpressionParser::TupleEnds() {
  return stream_.Is(TokenType::kVariableEnd) || stream_.Is(TokenType::kBlockEnd) || stream_.Is(TokenType::kRightParen);
}

ExprPtr ExpressionParser::TupleOf(bool explicit_parentheses, bool simple, bool with_condition, bool with_namespace) {
  ParseDepth guard(depth_, stream_.line());
  auto node = std::make_unique<ItemsExpr>(ExprKind::kTuple, stream_.line());
  bool is_tuple = false;
  for (;;) {
    if (!node->items.empty()) stream_.Expect(TokenType::kComma);
    if (TupleEnds()) break;
    node->items.push_back(simple ? Primary(with_namespace) : with_condition ? Condition() : Or());
    Contain(*node, node->items.back());
    if (!stream_.Is(TokenType::kComma)) break;
    is_tuple = true;
  }
  if (is_tuple || (node->items.empty() && explicit_parentheses)) return node;
  if (!node->items.empty()) return std::move(node->items[0]);
  FailSyntax(stream_.line(), "Expected an expression, got '", Describe(stream_.current()), "'");
}

ExprPtr ExpressionParser::Tuple(bool with_condition) { return TupleOf(false, false, with_condition, false); }

void ExpressionParser::CheckTarget(const Expr& target) {
  if (target.kind == ExprKind::kName) return;
  if (target.kind == ExprKind::kTuple) {
    for (const ExprPtr& item : static_cast<const ItemsExpr&>(target).items) CheckTarget(*item);
  } else if (target.kind != ExprKind::kNamespaceItem) {
    FailSyntax(target.line, "can't assign to this expression");
  }
}

ExprPtr ExpressionParser::Target(bool with_namespace) {
  ExprPtr target = TupleOf(false, true, true, with_namespace);
  CheckTarget(*target);
  return target;
}

NameExpr ExpressionParser::NameTarget() {
  Token token = stream_.Expect(TokenType::kName);
  for (const char* word : {"true", "false", "none", "True", "False", "None"}) {
    if (token.text == word) FailSyntax(token.line, "can't assign to 'name'");
  }
  return NameExpr(token.line, token.text);
}

}  // namespace halfbyte::text::jinja
