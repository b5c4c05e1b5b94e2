#include "text/jinja_parse_expression.h"

#include <algorithm>

namespace halfbyte::text::jinja {
namespace {

constexpr int kMaxExpressionDepth = 500;  // "a + a + a + ..." is as deep as it is long

// Records that `node` holds something `depth` levels deep.
void Contain(Expr& node, int depth) {
  node.depth = std::max(node.depth, depth + 1);
  if (node.depth > kMaxExpressionDepth) FailSyntax(node.line, "an expression is nested deeper than ", kMaxExpressionDepth, " levels");
}
void Contain(Expr& node, const ExprPtr& child) {
  if (child != nullptr) Contain(node, child->depth);
}

struct ComparisonToken {
  TokenType type;
  Comparison comparison;
};
constexpr ComparisonToken kComparisons[] = {
    {TokenType::kEqual, Comparison::kEqual},     {TokenType::kNotEqual, Comparison::kNotEqual},
    {TokenType::kLess, Comparison::kLess},       {TokenType::kLessEqual, Comparison::kLessEqual},
    {TokenType::kGreater, Comparison::kGreater}, {TokenType::kGreaterEqual, Comparison::kGreaterEqual},
};

}  // namespace

ExprPtr ExpressionParser::BinaryNode(ExprKind kind, BinaryOperator op, int line, ExprPtr left, ExprPtr right) {
  auto node = std::make_unique<BinaryExpr>(kind, line);
  node->op = op;
  Contain(*node, left);
  Contain(*node, right);
  node->left = std::move(left);
  node->right = std::move(right);
  return node;
}

ExprPtr ExpressionParser::Condition() {
  ParseDepth guard(depth_, stream_.line());
  int line = stream_.line();
  ExprPtr value = Or();
  while (stream_.SkipName("if")) {
    auto node = std::make_unique<ConditionExpr>(line);
    node->test = Or();
    if (stream_.SkipName("else")) node->no = Condition();
    node->yes = std::move(value);
    for (const ExprPtr* part : {&node->test, &node->yes, &node->no}) Contain(*node, *part);
    value = std::move(node);
    line = stream_.line();
  }
  return value;
}

ExprPtr ExpressionParser::Or() {
  int line = stream_.line();
  ExprPtr left = And();
  while (stream_.SkipName("or")) left = BinaryNode(ExprKind::kOr, {}, line, std::move(left), And());
  return left;
}

ExprPtr ExpressionParser::And() {
  int line = stream_.line();
  ExprPtr left = Not();
  while (stream_.SkipName("and")) left = BinaryNode(ExprKind::kAnd, {}, line, std::move(left), Not());
  return left;
}

ExprPtr ExpressionParser::Not() {
  if (!stream_.IsName("not")) return Compare();
  ParseDepth guard(depth_, stream_.line());
  auto node = std::make_unique<UnaryExpr>(ExprKind::kNot, stream_.Next().line);
  node->operand = Not();
  Contain(*node, node->operand);
  return node;
}

ExprPtr ExpressionParser::Compare() {
  auto node = std::make_unique<CompareExpr>(stream_.line());
  node->first = Sum();
  for (;;) {
    auto it = std::find_if(std::begin(kComparisons), std::end(kComparisons), [&](const auto& c) { return stream_.Is(c.type); });
    Comparison comparison;
    if (it != std::end(kComparisons)) {
      comparison = it->comparison;
      stream_.Next();
    } else if (stream_.SkipName("in")) {
      comparison = Comparison::kIn;
    } else if (stream_.IsName("not") && stream_.look().type == TokenType::kName && stream_.look().text == "in") {
      comparison = Comparison::kNotIn;
      stream_.Next();
      stream_.Next();
    } else {
      break;
    }
    node->rest.emplace_back(comparison, Sum());
  }
  if (node->rest.empty()) return std::move(node->first);
  Contain(*node, node->first);
  for (const auto& part : node->rest) Contain(*node, part.second);
  return node;
}

ExprPtr ExpressionParser::Sum() {
  int line = stream_.line();
  ExprPtr left = Concat();
  for (;;) {
    BinaryOperator op;
    if (stream_.Skip(TokenType::kAdd)) op = BinaryOperator::kAdd;
    else if (stream_.Skip(TokenType::kSub)) op = BinaryOperator::kSubtract;
    else return left;
    left = BinaryNode(ExprKind::kBinary, op, line, std::move(left), Concat());
  }
}

ExprPtr ExpressionParser::Concat() {
  int line = stream_.line();
  ExprPtr first = Product();
  if (!stream_.Is(TokenType::kTilde)) return first;
  auto node = std::make_unique<ItemsExpr>(ExprKind::kConcat, line);
  node->items.push_back(std::move(first));
  while (stream_.Skip(TokenType::kTilde)) node->items.push_back(Product());
  for (const ExprPtr& item : node->items) Contain(*node, item);
  return node;
}

ExprPtr ExpressionParser::Product() {
  int line = stream_.line();
  ExprPtr left = Power();
  for (;;) {
    BinaryOperator op;
    if (stream_.Skip(TokenType::kMul)) op = BinaryOperator::kMultiply;
    else if (stream_.Skip(TokenType::kDiv)) op = BinaryOperator::kDivide;
    else if (stream_.Skip(TokenType::kFloorDiv)) op = BinaryOperator::kFloorDivide;
    else if (stream_.Skip(TokenType::kMod)) op = BinaryOperator::kModulo;
    else return left;
    left = BinaryNode(ExprKind::kBinary, op, line, std::move(left), Power());
  }
}

ExprPtr ExpressionParser::Power() {
  int line = stream_.line();
  ExprPtr left = Unary(true);
  while (stream_.Skip(TokenType::kPow)) {  // to the left, unlike Python
    left = BinaryNode(ExprKind::kBinary, BinaryOperator::kPower, line, std::move(left), Unary(true));
  }
  return left;
}

ExprPtr ExpressionParser::Unary(bool with_filters) {
  ExprPtr node;
  if (stream_.Is(TokenType::kSub) || stream_.Is(TokenType::kAdd)) {
    ParseDepth guard(depth_, stream_.line());
    auto unary = std::make_unique<UnaryExpr>(stream_.Is(TokenType::kSub) ? ExprKind::kNegate : ExprKind::kPlus, stream_.line());
    stream_.Next();
    unary->operand = Unary(false);
    Contain(*unary, unary->operand);
    node = std::move(unary);
  } else {
    node = Primary();
  }
  node = Postfix(std::move(node));
  return with_filters ? FiltersAndTests(std::move(node)) : std::move(node);
}

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
