// Visiting every expression under an expression or a call's arguments.
#pragma once

#include "text/jinja_ast.h"

namespace halfbyte::text::jinja {

template <typename F>
void ForEachArgument(const CallArguments& arguments, F f) {
  for (const ExprPtr& e : arguments.positional) f(*e);
  for (const auto& [name, e] : arguments.keyword) f(*e);
  if (arguments.spread != nullptr) f(*arguments.spread);
  if (arguments.keyword_spread != nullptr) f(*arguments.keyword_spread);
}

// f(child) for the direct children that are there, in the order of evaluation where it matters.
template <typename F>
void ForEachChild(const Expr& e, F f) {
  auto maybe = [&](const ExprPtr& child) { if (child != nullptr) f(*child); };
  switch (e.kind) {
    case ExprKind::kConst: case ExprKind::kName: break;
    case ExprKind::kNamespaceItem: f(static_cast<const NamespaceItemExpr&>(e).object); break;
    case ExprKind::kTuple: case ExprKind::kList: case ExprKind::kConcat:
      for (const ExprPtr& item : static_cast<const ItemsExpr&>(e).items) f(*item);
      break;
    case ExprKind::kDict:
      for (const auto& [key, value] : static_cast<const DictExpr&>(e).items) { f(*key); f(*value); }
      break;
    case ExprKind::kNot: case ExprKind::kNegate: case ExprKind::kPlus: f(*static_cast<const UnaryExpr&>(e).operand); break;
    case ExprKind::kBinary: case ExprKind::kAnd: case ExprKind::kOr:
      f(*static_cast<const BinaryExpr&>(e).left);
      f(*static_cast<const BinaryExpr&>(e).right);
      break;
    case ExprKind::kCompare:
      f(*static_cast<const CompareExpr&>(e).first);
      for (const auto& part : static_cast<const CompareExpr&>(e).rest) f(*part.second);
      break;
    case ExprKind::kCondition: {
      const auto& condition = static_cast<const ConditionExpr&>(e);
      f(*condition.test);
      f(*condition.yes);
      maybe(condition.no);
      break;
    }
    case ExprKind::kGetAttribute: f(*static_cast<const GetAttributeExpr&>(e).object); break;
    case ExprKind::kGetItem:
      f(*static_cast<const GetItemExpr&>(e).object);
      f(*static_cast<const GetItemExpr&>(e).key);
      break;
    case ExprKind::kSlice: {
      const auto& slice = static_cast<const SliceExpr&>(e);
      f(*slice.object);
      for (const ExprPtr* part : {&slice.start, &slice.stop, &slice.step}) maybe(*part);
      break;
    }
    case ExprKind::kCall:
      f(*static_cast<const CallExpr&>(e).callee);
      ForEachArgument(static_cast<const CallExpr&>(e).arguments, f);
      break;
    case ExprKind::kFilter:
      maybe(static_cast<const FilterExpr&>(e).target);
      ForEachArgument(static_cast<const FilterExpr&>(e).arguments, f);
      break;
    case ExprKind::kTest:
      f(*static_cast<const TestExpr&>(e).target);
      ForEachArgument(static_cast<const TestExpr&>(e).arguments, f);
      break;
  }
}

// Whether the name is read anywhere in the body, nested blocks ({% block %}) left out.
bool ReadsName(const Body& body, std::string_view name);

}  // namespace halfbyte::text::jinja
