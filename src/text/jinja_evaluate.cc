#include "text/jinja_compare.h"
#include "text/jinja_interpreter.h"
#include "text/jinja_methods.h"
#include "text/jinja_text.h"

namespace halfbyte::text::jinja {

using Kind = Value::Kind;

Value Interpreter::Evaluate(const Expr& e) {
  if (e.kind == ExprKind::kConst) return static_cast<const ConstExpr&>(e).value;
  if (e.kind == ExprKind::kName) {
    const auto& name = static_cast<const NameExpr&>(e);
    const Value& v = Slot(name.reference);
    return v.is_missing() ? MakeUndefinedVariable(heap(), name.name) : v;
  }
  Step();
  DepthGuard guard(*this);
  switch (e.kind) {
    case ExprKind::kTuple: return Tuple(EvaluateAll(static_cast<const ItemsExpr&>(e).items));
    case ExprKind::kList: return List(EvaluateAll(static_cast<const ItemsExpr&>(e).items));
    case ExprKind::kConcat: return Concatenate(*this, EvaluateAll(static_cast<const ItemsExpr&>(e).items));
    case ExprKind::kDict: return Dict(static_cast<const DictExpr&>(e));
    case ExprKind::kNot: return Value::Bool(!Truthy(Evaluate(*static_cast<const UnaryExpr&>(e).operand)));
    case ExprKind::kNegate: return Negate(*this, Evaluate(*static_cast<const UnaryExpr&>(e).operand));
    case ExprKind::kPlus: return Plus(*this, Evaluate(*static_cast<const UnaryExpr&>(e).operand));
    case ExprKind::kBinary: {
      const auto& binary = static_cast<const BinaryExpr&>(e);
      Value left = Evaluate(*binary.left);
      Value right = Evaluate(*binary.right);
      line = e.line;
      return Binary(*this, binary.op, left, right);
    }
    case ExprKind::kAnd: case ExprKind::kOr: {
      const auto& binary = static_cast<const BinaryExpr&>(e);
      Value left = Evaluate(*binary.left);
      return Truthy(left) == (e.kind == ExprKind::kOr) ? left : Evaluate(*binary.right);
    }
    case ExprKind::kCompare: return Compare(static_cast<const CompareExpr&>(e));
    case ExprKind::kCondition: return Condition(static_cast<const ConditionExpr&>(e));
    case ExprKind::kGetAttribute: {
      const auto& access = static_cast<const GetAttributeExpr&>(e);
      return Attribute(access, Evaluate(*access.object));
    }
    case ExprKind::kGetItem: {
      const auto& access = static_cast<const GetItemExpr&>(e);
      Value object = Evaluate(*access.object);
      Value key = Evaluate(*access.key);
      line = e.line;
      return GetItem(*this, object, key);
    }
    case ExprKind::kSlice: {
      const auto& slice = static_cast<const SliceExpr&>(e);
      Value object = Evaluate(*slice.object);
      Value start = EvaluateOr(slice.start), stop = EvaluateOr(slice.stop), step = EvaluateOr(slice.step);
      line = e.line;
      return GetSlice(*this, object, start, stop, step);
    }
    case ExprKind::kCall: return Call(static_cast<const CallExpr&>(e), nullptr);
    case ExprKind::kFilter: return Filter(static_cast<const FilterExpr&>(e), nullptr);
    case ExprKind::kTest: return Test(static_cast<const TestExpr&>(e));
    case ExprKind::kConst: case ExprKind::kName: case ExprKind::kNamespaceItem: break;
  }
  return Value();
}

std::vector<Value> Interpreter::EvaluateAll(const std::vector<ExprPtr>& items) {
  std::vector<Value> values;
  values.reserve(items.size());
  for (const ExprPtr& item : items) values.push_back(Evaluate(*item));
  return values;
}

Value Interpreter::Dict(const DictExpr& e) {
  Value dict = MakeDict(heap());
  for (const auto& [key_expr, value_expr] : e.items) {
    Value key = Evaluate(*key_expr);
    dict.As<DictObject>().Set(key, Evaluate(*value_expr));
  }
  return dict;
}

bool Interpreter::Compare(Comparison op, const Value& a, const Value& b) {
  switch (op) {
    case Comparison::kEqual: return Equal(*this, a, b);
    case Comparison::kNotEqual: return !Equal(*this, a, b);
    case Comparison::kLess: return Ordered(*this, Order::kLess, a, b);
    case Comparison::kLessEqual: return Ordered(*this, Order::kLessEqual, a, b);
    case Comparison::kGreater: return Ordered(*this, Order::kGreater, a, b);
    case Comparison::kGreaterEqual: return Ordered(*this, Order::kGreaterEqual, a, b);
    case Comparison::kIn: return Contains(*this, b, a);
    case Comparison::kNotIn: return !Contains(*this, b, a);
  }
  return false;
}

// a < b < c: each neighbouring pair, as long as they hold.
Value Interpreter::Compare(const CompareExpr& e) {
  Value left = Evaluate(*e.first);
  for (const auto& [op, right_expr] : e.rest) {
    Value right = Evaluate(*right_expr);
    line = e.line;
    if (!Compare(op, left, right)) return Value::Bool(false);
    left = std::move(right);
  }
  return Value::Bool(true);
}

Value Interpreter::Condition(const ConditionExpr& e) {
  if (Truthy(Evaluate(*e.test))) return Evaluate(*e.yes);
  if (e.no != nullptr) return Evaluate(*e.no);
  return MakeUndefined(heap(), base::StrCat("the inline if-expression on line ", e.line,
                                            " evaluated to false and no else section was defined."));
}

Value Interpreter::Attribute(const GetAttributeExpr& e, const Value& object) {
  line = e.line;
  if (object.is(Kind::kDict) && !e.on_dict) {  // by far the most frequent access: message.role
    const Value* found = object.As<DictObject>().Find(e.name);
    if (found != nullptr) return *found;
  }
  return GetAttribute(*this, object, Value::Borrowed(e.name));
}

Value Interpreter::Call(const CallExpr& e, const Value* caller) {
  Value callee, self;
  const Method* method = nullptr;
  if (e.callee->kind == ExprKind::kGetAttribute) {
    // text.strip() and dict.items() without making an object for the bound method.
    const auto& access = static_cast<const GetAttributeExpr&>(*e.callee);
    self = Evaluate(*access.object);
    if (self.is_string()) method = FindStringMethod(access.name);
    else if (self.is(Kind::kDict) && access.on_dict) method = FindContainerMethod(Kind::kDict, access.name);
    if (method == nullptr) callee = Attribute(access, self);
  } else {
    callee = Evaluate(*e.callee);
  }
  Arguments arguments = EvaluateArguments(e.arguments);
  if (caller != nullptr) {
    for (const auto& argument : arguments.keyword) {
      if (argument.first == "caller") Fail("TypeError", "got multiple values for keyword argument 'caller'");
    }
    arguments.keyword.emplace_back("caller", *caller);
  }
  line = e.line;
  if (method != nullptr) {
    Step();
    return method->function(*this, self, arguments);
  }
  return CallValue(*this, callee, arguments);
}

Arguments Interpreter::EvaluateArguments(const CallArguments& e) {
  Arguments arguments;
  arguments.positional.reserve(e.positional.size());
  for (const ExprPtr& item : e.positional) arguments.positional.push_back(Evaluate(*item));
  if (e.spread != nullptr) {
    for (Value& v : Collect(*this, Evaluate(*e.spread))) arguments.positional.push_back(std::move(v));
  }
  for (const auto& [name, value] : e.keyword) arguments.keyword.emplace_back(name, Evaluate(*value));
  if (e.keyword_spread != nullptr) SpreadKeywords(Evaluate(*e.keyword_spread), arguments);
  return arguments;
}

void Interpreter::SpreadKeywords(const Value& mapping, Arguments& arguments) {
  FailIfUndefined(mapping);
  if (!mapping.is(Kind::kDict)) Fail("TypeError", "argument after ** must be a mapping, not ", TypeName(mapping));
  arguments.spread = mapping;
  for (const auto& [key, value] : mapping.As<DictObject>().entries()) {
    if (!key.is_string()) Fail("TypeError", "keywords must be strings");
    for (const auto& other : arguments.keyword) {
      if (other.first == key.text()) Fail("TypeError", "got multiple values for keyword argument '", key.text(), "'");
    }
    arguments.keyword.emplace_back(key.text(), value);
  }
}

Value Interpreter::Filter(const FilterExpr& e, const Value* block_text) {
  Value value;
  if (e.target == nullptr) value = *block_text;
  else if (e.target->kind == ExprKind::kFilter) value = Filter(static_cast<const FilterExpr&>(*e.target), block_text);
  else value = Evaluate(*e.target);
  Arguments arguments = EvaluateArguments(e.arguments);
  line = e.line;
  if (e.function == nullptr) Fail("TemplateRuntimeError", "No filter named '", e.name, "' found.");
  return e.function(*this, value, arguments);
}

Value Interpreter::Test(const TestExpr& e) {
  Value value = Evaluate(*e.target);
  Arguments arguments = EvaluateArguments(e.arguments);
  line = e.line;
  if (e.function == nullptr) Fail("TemplateRuntimeError", "No test named '", e.name, "' found.");
  return Value::Bool(e.function(*this, value, arguments));
}

}  // namespace halfbyte::text::jinja
