#include "text/jinja_parse_expression.h"

#include <algorithm>

namespace halfbyte::text::jinja {
namespace {

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

}  // namespace halfbyte::text::jinja
