// Expressions by jinja2's grammar, loosest first: condition, or, and, not, comparison, + and -, ~, * / // %, **, unary (with
// attributes, calls, filters and tests behind it).
#pragma once

#include <algorithm>

#include "text/jinja_ast.h"
#include "text/jinja_token_stream.h"

namespace halfbyte::text::jinja {

// Records that `node` holds an expression of `depth` levels. "a + a + a + ..." is as deep as it is long, so there is a limit.
inline void Contain(Expr& node, int depth) {
  constexpr int kMost = 500;
  node.depth = std::max(node.depth, depth + 1);
  if (node.depth > kMost) FailSyntax(node.line, "an expression is nested deeper than ", kMost, " levels");
}
inline void Contain(Expr& node, const ExprPtr& child) {
  if (child != nullptr) Contain(node, child->depth);
}

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& stream) : stream_(stream) {}

  ExprPtr Expression() { return Condition(); }
  // One expression, or several with commas between as a tuple.
  ExprPtr Tuple(bool with_condition = true);
  // What may be assigned to: a name, a tuple of such, and with `with_namespace` also name.attribute.
  ExprPtr Target(bool with_namespace);
  // The filters after a block tag's name; `inner` is nullptr (the block's text) at first. `inline_start`: a name, no "|".
  ExprPtr Filters(ExprPtr inner, bool inline_start);
  NameExpr NameTarget();

 private:
  ExprPtr Condition();
  ExprPtr Or();
  ExprPtr And();
  ExprPtr Not();
  ExprPtr Compare();
  ExprPtr Sum();
  ExprPtr Concat();
  ExprPtr Product();
  ExprPtr Power();
  ExprPtr Unary(bool with_filters);
  ExprPtr Primary(bool with_namespace = false);
  ExprPtr NameOrKeyword(bool with_namespace);
  ExprPtr Parenthesised();
  ExprPtr List();
  ExprPtr Dict();
  ExprPtr Postfix(ExprPtr node);
  ExprPtr FiltersAndTests(ExprPtr node);
  ExprPtr Subscript(ExprPtr node);
  ExprPtr Bracketed(ExprPtr node, int line);
  ExprPtr Call(ExprPtr node);
  CallArguments Arguments(int& depth);
  ExprPtr Test(ExprPtr node);
  ExprPtr BinaryNode(ExprKind kind, BinaryOperator op, int line, ExprPtr left, ExprPtr right);
  bool TupleEnds();
  ExprPtr TupleOf(bool explicit_parentheses, bool simple, bool with_condition, bool with_namespace);
  void CheckTarget(const Expr& target);

  TokenStream& stream_;
  int depth_ = 0;
};

}  // namespace halfbyte::text::jinja
