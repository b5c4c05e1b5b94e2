// What stands behind an expression: attributes, subscripts, calls, filters, tests.
#include "text/jinja_parse_expression.h"

namespace halfbyte::text::jinja {

ExprPtr ExpressionParser::Postfix(ExprPtr node) {
  for (;;) {
    if (stream_.Is(TokenType::kDot) || stream_.Is(TokenType::kLeftBracket)) node = Subscript(std::move(node));
    else if (stream_.Is(TokenType::kLeftParen)) node = Call(std::move(node));
    else return node;
  }
}

ExprPtr ExpressionParser::FiltersAndTests(ExprPtr node) {
  for (;;) {
    if (stream_.Is(TokenType::kPipe)) node = Filters(std::move(node), false);
    else if (stream_.IsName("is")) node = Test(std::move(node));
    else if (stream_.Is(TokenType::kLeftParen)) node = Call(std::move(node));
    else return node;
  }
}

ExprPtr ExpressionParser::Subscript(ExprPtr node) {
  Token token = stream_.Next();
  if (token.type == TokenType::kLeftBracket) return Bracketed(std::move(node), token.line);
  Token name = stream_.Next();
  int depth = node->depth;
  if (name.type == TokenType::kName) {
    auto access = std::make_unique<GetAttributeExpr>(token.line, std::move(node), std::move(name.text));
    Contain(*access, depth);
    return access;
  }
  if (name.type != TokenType::kInteger) FailSyntax(name.line, "expected name or number");
  auto access = std::make_unique<GetItemExpr>(token.line);
  access->object = std::move(node);
  access->key = std::make_unique<ConstExpr>(name.line, Value::Integer(name.integer));
  Contain(*access, depth);
  return access;
}

// What stands in brackets: a key, several (a tuple), or start:stop:step.
ExprPtr ExpressionParser::Bracketed(ExprPtr node, int line) {
  ExprPtr start;
  if (stream_.Is(TokenType::kRightBracket)) start = std::make_unique<ItemsExpr>(ExprKind::kTuple, line);  // x[] is x[()]
  else if (!stream_.Is(TokenType::kColon)) start = Expression();
  if (stream_.Skip(TokenType::kColon)) {
    auto slice = std::make_unique<SliceExpr>(line);
    auto ends = [&] { return stream_.Is(TokenType::kRightBracket) || stream_.Is(TokenType::kColon); };
    slice->start = std::move(start);
    if (!ends()) slice->stop = Expression();
    if (stream_.Skip(TokenType::kColon) && !ends()) slice->step = Expression();
    slice->object = std::move(node);
    for (const ExprPtr* part : {&slice->object, &slice->start, &slice->stop, &slice->step}) Contain(*slice, *part);
    stream_.Expect(TokenType::kRightBracket);
    return slice;
  }
  auto access = std::make_unique<GetItemExpr>(line);
  access->key = std::move(start);
  if (stream_.Is(TokenType::kComma)) {
    auto tuple = std::make_unique<ItemsExpr>(ExprKind::kTuple, line);
    tuple->items.push_back(std::move(access->key));
    while (stream_.Skip(TokenType::kComma)) tuple->items.push_back(Expression());
    for (const ExprPtr& item : tuple->items) Contain(*tuple, item);
    access->key = std::move(tuple);
  }
  stream_.Expect(TokenType::kRightBracket);
  access->object = std::move(node);
  Contain(*access, access->object);
  Contain(*access, access->key);
  return access;
}

CallArguments ExpressionParser::Arguments(int& depth) {
  int line = stream_.Expect(TokenType::kLeftParen).line;
  CallArguments a;
  auto ensure = [&](bool right) { if (!right) FailSyntax(line, "invalid syntax for function call expression"); };
  auto take = [&] {
    ExprPtr value = Expression();
    depth = std::max(depth, value->depth);
    return value;
  };
  for (bool first = true; !stream_.Is(TokenType::kRightParen); first = false) {
    if (!first) {
      stream_.Expect(TokenType::kComma);
      if (stream_.Is(TokenType::kRightParen)) break;
    }
    if (stream_.Skip(TokenType::kMul)) {
      ensure(a.spread == nullptr && a.keyword_spread == nullptr);
      a.spread = take();
    } else if (stream_.Skip(TokenType::kPow)) {
      ensure(a.keyword_spread == nullptr);
      a.keyword_spread = take();
    } else if (stream_.Is(TokenType::kName) && stream_.look().type == TokenType::kAssign) {
      ensure(a.keyword_spread == nullptr);
      std::string name = stream_.Next().text;
      stream_.Next();
      for (const auto& [other, value] : a.keyword) {
        if (other == name) FailSyntax(line, "keyword argument repeated: ", name);
      }
      a.keyword.emplace_back(std::move(name), take());
    } else {
      ensure(a.spread == nullptr && a.keyword_spread == nullptr && a.keyword.empty());
      a.positional.push_back(take());
    }
  }
  stream_.Next();
  return a;
}

ExprPtr ExpressionParser::Call(ExprPtr node) {
  auto call = std::make_unique<CallExpr>(stream_.line());
  int depth = node->depth;
  call->callee = std::move(node);
  call->arguments = Arguments(depth);
  Contain(*call, depth);
  return call;
}

ExprPtr ExpressionParser::Filters(ExprPtr inner, bool inline_start) {
  while (stream_.Is(TokenType::kPipe) || inline_start) {
    if (!inline_start) stream_.Next();
    inline_start = false;
    Token token = stream_.Expect(TokenType::kName);
    auto node = std::make_unique<FilterExpr>(token.line);
    node->name = std::move(token.text);
    while (stream_.Skip(TokenType::kDot)) node->name += "." + stream_.Expect(TokenType::kName).text;
    node->function = FindFilter(node->name);
    int depth = inner == nullptr ? 0 : inner->depth;
    if (stream_.Is(TokenType::kLeftParen)) node->arguments = Arguments(depth);
    Contain(*node, depth);
    node->target = std::move(inner);
    inner = std::move(node);
  }
  return inner;
}

ExprPtr ExpressionParser::Test(ExprPtr target) {
  auto node = std::make_unique<TestExpr>(stream_.Next().line);
  bool negated = stream_.SkipName("not");
  node->name = stream_.Expect(TokenType::kName).text;
  while (stream_.Skip(TokenType::kDot)) node->name += "." + stream_.Expect(TokenType::kName).text;
  node->function = FindTest(node->name);
  int depth = target->depth;
  if (stream_.Is(TokenType::kLeftParen)) {
    node->arguments = Arguments(depth);
  } else {
    bool argument = false;
    for (TokenType type : {TokenType::kName, TokenType::kString, TokenType::kInteger, TokenType::kFloat, TokenType::kLeftBracket,
                           TokenType::kLeftBrace}) {
      argument |= stream_.Is(type);
    }
    if (argument && !stream_.IsName("else") && !stream_.IsName("or") && !stream_.IsName("and")) {
      if (stream_.IsName("is")) FailSyntax(stream_.line(), "You cannot chain multiple tests with is");
      ParseDepth guard(depth_, stream_.line());
      node->arguments.positional.push_back(Postfix(Primary()));
      depth = std::max(depth, node->arguments.positional[0]->depth);
    }
  }
  Contain(*node, depth);
  node->target = std::move(target);
  if (!negated) return node;
  auto inverse = std::make_unique<UnaryExpr>(ExprKind::kNot, node->line);
  Contain(*inverse, node->depth);
  inverse->operand = std::move(node);
  return inverse;
}

}  // namespace halfbyte::text::jinja
