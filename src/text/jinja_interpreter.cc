#include "text/jinja_interpreter.h"

#include "text/jinja_compare.h"
#include "text/jinja_macro.h"
#include "text/jinja_text.h"

namespace halfbyte::text::jinja {

using Kind = Value::Kind;

std::string Interpreter::Run() {
  std::string text;
  out_ = &text;
  root_ = frame_ = NewFrame(tree_.function, Value());
  if (tree_.uses_self) frame().slots[tree_.self_slot] = MakeSelf(*this);
  Enter(tree_.scope);
  Execute(tree_.body);
  return text;
}

Value Interpreter::NewFrame(const FunctionLayout& function, const Value& parent) {
  return Value::Of(Kind::kFrame, new FrameObject(heap(), function.slot_count, parent));
}

Value& Interpreter::Slot(Reference reference) {
  const Value* frame = &frame_;
  for (uint32_t i = 0; i < reference.up; ++i) frame = &frame->As<FrameObject>().parent;
  return frame->As<FrameObject>().slots[reference.slot];
}

void Interpreter::Enter(const ScopeLayout& scope) {
  for (const SlotStart& start : scope.starts) {
    Value& slot = frame().slots[start.slot];
    switch (start.from) {
      case SlotStart::From::kUnset: slot = Value(); break;
      case SlotStart::From::kOuter: slot = Slot(start.outer); break;
      case SlotStart::From::kContext: slot = Resolve(start.name); break;
    }
  }
}

void Interpreter::Leave(const ScopeLayout& scope) {
  for (uint32_t i = 0; i < scope.slot_count; ++i) frame().slots[scope.first_slot + i] = Value();
}

Value Interpreter::Resolve(const std::string& name) {
  Step();
  for (const auto& [other, value] : visible_) {
    if (other == name) return value;
  }
  if (blocks_ > 0) {
    for (const auto& [other, slot] : tree_.exported) {
      if (const Value& v = root_.As<FrameObject>().slots[slot]; other == name && !v.is_missing()) return v;
    }
  }
  auto [it, is_new] = variables_.try_emplace(name);
  if (is_new) {
    const base::Json* json = context_.Find(name);
    it->second = json != nullptr ? FromJson(*this, *json) : FindGlobal(*this, name);
  }
  return it->second;
}

void Interpreter::Write(std::string_view text) {
  StepBytes(text.size());
  size_t most = limits().max_output;
  if (text.size() > most - buffered_) FailLimit("the template's output is longer than ", most, " bytes");
  buffered_ += text.size();
  *out_ += text;
}

void Interpreter::WriteValue(const Value& v) {
  if (autoescape && !v.is_markup()) {
    std::string escaped;
    AppendEscaped(escaped, ToStr(*this, v).text());
    Write(escaped);
  } else if (!v.is_undefined()) {
    Write(ToStr(*this, v).text());
  }
}

template <typename F>
Interpreter::Flow Interpreter::Capture(Value& text, F f) {
  std::string buffer;
  std::string* outer = std::exchange(out_, &buffer);
  Flow flow = f();
  out_ = outer;
  buffered_ -= buffer.size();
  text = String(std::move(buffer)).WithMarkup(autoescape);
  return flow;
}

Interpreter::Flow Interpreter::Execute(const Body& body) {
  DepthGuard guard(*this);
  for (const auto& statement : body) {
    if (Flow flow = Execute(*statement); flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::Execute(const Statement& s) {
  Step();
  line = s.line;
  switch (s.kind) {
    case StatementKind::kOutput: Output(static_cast<const OutputStatement&>(s)); break;
    case StatementKind::kFor: return For(static_cast<const ForStatement&>(s));
    case StatementKind::kIf: return If(static_cast<const IfStatement&>(s));
    case StatementKind::kSet: Set(static_cast<const SetStatement&>(s)); break;
    case StatementKind::kSetBlock: return SetBlock(static_cast<const SetBlockStatement&>(s));
    case StatementKind::kMacro: Macro(static_cast<const MacroStatement&>(s)); break;
    case StatementKind::kCallBlock: CallBlock(static_cast<const CallBlockStatement&>(s)); break;
    case StatementKind::kFilterBlock: return FilterBlock(static_cast<const FilterBlockStatement&>(s));
    case StatementKind::kWith: return With(static_cast<const WithStatement&>(s));
    case StatementKind::kAutoescape: case StatementKind::kScope: return Scoped(static_cast<const ScopeStatement&>(s));
    case StatementKind::kBlock: Block(static_cast<const BlockStatement&>(s)); break;
    case StatementKind::kBreak: return Flow::kBreak;
    case StatementKind::kContinue: return Flow::kContinue;
    case StatementKind::kNoLoader: Fail("TypeError", "no loader for this environment specified");
  }
  return Flow::kNext;
}

void Interpreter::Output(const OutputStatement& output) {
  for (const auto& item : output.items) {
    if (item.expression == nullptr) Write(item.data);
    else WriteValue(Evaluate(*item.expression));
  }
}

Interpreter::Flow Interpreter::If(const IfStatement& statement) {
  for (const auto& branch : statement.branches) {
    if (branch.test == nullptr || Truthy(Evaluate(*branch.test))) return Execute(branch.body);
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::For(const ForStatement& loop) {
  Value iterable = Evaluate(*loop.iterable);
  line = loop.line;
  if (!loop.recursive) return RunLoop(loop, iterable, 0, Value());
  WriteValue(RecurseLoop(loop, frame_, iterable, 0));
  return Flow::kNext;
}

Value Interpreter::RecurseLoop(const ForStatement& loop, const Value& outer, const Value& iterable, int64_t depth) {
  DepthGuard guard(*this);
  Value caller = std::exchange(frame_, NewFrame(loop.function, outer));
  Value text;
  Capture(text, [&] { return RunLoop(loop, iterable, depth, MakeLoopRecursion(*this, loop, outer)); });
  frame_ = std::move(caller);
  return text;
}

Interpreter::Flow Interpreter::RunLoop(const ForStatement& loop, const Value& iterable, int64_t depth, const Value& recurse) {
  Value source = iterable;
  if (loop.test != nullptr) {
    Enter(loop.test_scope);
    source = MakeFilteredIterator(*this, loop, frame_, iterable);
  }
  auto* state = new LoopObject(*this, source, depth, recurse);
  Value loop_value = Value::Of(Kind::kLoop, state);
  bool completed = false;  // an iteration ran to its end; else the else part is run, also after a break
  for (Value item; state->Next(item);) {
    Assign(*loop.target, item);
    frame().slots[loop.loop_slot] = loop_value;
    Enter(loop.scope);
    Flow flow = Execute(loop.body);
    if (flow == Flow::kBreak) break;
    completed |= flow == Flow::kNext;
    line = loop.line;
  }
  Leave(loop.scope);
  if (completed || loop.otherwise.empty()) return Flow::kNext;
  Enter(loop.else_scope);
  Flow flow = Execute(loop.otherwise);
  Leave(loop.else_scope);
  return flow;
}

bool Interpreter::PassesTest(const ForStatement& loop, const Value& frame, const Value& item) {
  Value current = std::exchange(frame_, frame);
  Assign(*loop.test_target, item);
  bool passes = Truthy(Evaluate(*loop.test));
  frame_ = std::move(current);
  return passes;
}

void Interpreter::CheckNamespaces(const Expr& target) {
  if (target.kind == ExprKind::kTuple) {
    for (const ExprPtr& item : static_cast<const ItemsExpr&>(target).items) CheckNamespaces(*item);
  } else if (target.kind == ExprKind::kNamespaceItem) {
    if (!Slot(static_cast<const NamespaceItemExpr&>(target).object.reference).is(Kind::kNamespace)) {
      Fail("TemplateRuntimeError", "cannot assign attribute on non-namespace object");
    }
  }
}

void Interpreter::Assign(const Expr& target, const Value& v) {
  if (target.kind == ExprKind::kName) {
    Slot(static_cast<const NameExpr&>(target).reference) = v;
  } else if (target.kind == ExprKind::kTuple) {
    AssignTuple(static_cast<const ItemsExpr&>(target), v);
  } else {
    const auto& item = static_cast<const NamespaceItemExpr&>(target);
    SetNamespaceItem(Slot(item.object.reference), Value::Borrowed(item.attribute), v);
  }
}

void Interpreter::AssignTuple(const ItemsExpr& target, const Value& v) {
  if (!IsIterable(v)) Fail("TypeError", "cannot unpack non-iterable ", TypeName(v), " object");
  std::vector<Value> items;
  size_t wanted = target.items.size();
  Cursor cursor(*this, v);
  for (Value item; items.size() <= wanted && cursor.Next(item);) items.push_back(std::move(item));
  if (items.size() > wanted) Fail("ValueError", "too many values to unpack (expected ", wanted, ")");
  if (items.size() < wanted) Fail("ValueError", "not enough values to unpack (expected ", wanted, ", got ", items.size(), ")");
  for (size_t i = 0; i < wanted; ++i) Assign(*target.items[i], items[i]);
}

void Interpreter::Set(const SetStatement& set) {
  CheckNamespaces(*set.target);
  Value v = Evaluate(*set.value);
  line = set.line;
  Assign(*set.target, v);
}

Interpreter::Flow Interpreter::SetBlock(const SetBlockStatement& set) {
  Value text;
  Enter(set.scope);
  Flow flow = Capture(text, [&] { return Execute(set.body); });
  if (flow == Flow::kNext) {
    if (set.filter != nullptr) text = Filter(static_cast<const FilterExpr&>(*set.filter), &text);
    CheckNamespaces(*set.target);
    Assign(*set.target, text);
  }
  Leave(set.scope);
  return flow;
}

Interpreter::Flow Interpreter::FilterBlock(const FilterBlockStatement& filter) {
  Value text;
  Enter(filter.scope);
  Flow flow = Capture(text, [&] { return Execute(filter.body); });
  if (flow == Flow::kNext) WriteValue(Filter(static_cast<const FilterExpr&>(*filter.filter), &text));
  Leave(filter.scope);
  return flow;
}

Interpreter::Flow Interpreter::With(const WithStatement& with) {
  Enter(with.scope);
  for (const auto& [target, value] : with.assignments) Assign(*target, Evaluate(*value));
  Flow flow = Execute(with.body);
  Leave(with.scope);
  return flow;
}

Interpreter::Flow Interpreter::Scoped(const ScopeStatement& scope) {
  bool before = autoescape;
  Enter(scope.scope);
  if (scope.value != nullptr) autoescape = Truthy(Evaluate(*scope.value));
  Flow flow = Execute(scope.body);
  autoescape = before;
  Leave(scope.scope);
  return flow;
}

void Interpreter::Macro(const MacroStatement& macro) {
  Slot(macro.name.reference) = MakeMacro(*this, macro.macro, macro.name.name, frame_);
}

void Interpreter::CallBlock(const CallBlockStatement& call) {
  Value caller = MakeMacro(*this, call.macro, {}, frame_);
  WriteValue(Call(static_cast<const CallExpr&>(*call.call), &caller));
}

void Interpreter::BindMacroArguments(const MacroSignature& macro, std::string_view name, const Arguments& arguments) {
  auto& slots = frame().slots;
  const auto& given = arguments.positional;
  size_t count = macro.parameters.size();
  for (size_t i = 0; i < count && i < given.size(); ++i) slots[macro.parameters[i].second] = given[i];
  Value rest = macro.uses_kwargs ? MakeDict(heap()) : Value();
  for (const auto& [key, value] : arguments.keyword) {
    size_t i = given.size();
    while (i < count && macro.parameters[i].first != key) ++i;
    if (i < count) slots[macro.parameters[i].second] = value;
    else if (key == "caller" && macro.uses_caller && !macro.explicit_caller) slots[macro.caller_slot] = value;
    else if (macro.uses_kwargs) rest.As<DictObject>().Set(String(std::string(key)), value);
    else Fail("TypeError", "macro '", name, "' takes no keyword argument '", key, "'");
  }
  if (macro.uses_caller && !macro.explicit_caller && slots[macro.caller_slot].is_missing()) {
    slots[macro.caller_slot] = MakeUndefined(heap(), "No caller defined");
  }
  if (macro.uses_kwargs) slots[macro.kwargs_slot] = rest;
  if (macro.uses_varargs) {
    std::vector<Value> more(given.begin() + static_cast<std::ptrdiff_t>(std::min(count, given.size())), given.end());
    slots[macro.varargs_slot] = Tuple(std::move(more));
  } else if (given.size() > count) {
    Fail("TypeError", "macro '", name, "' takes not more than ", count, " argument(s)");
  }
}

Value Interpreter::CallMacro(const MacroSignature& macro, std::string_view name, const Value& outer, const Arguments& arguments) {
  int call_line = line;
  Value caller = std::exchange(frame_, NewFrame(macro.function, outer));
  BindMacroArguments(macro, name, arguments);
  Enter(macro.scope);
  size_t without_default = macro.parameters.size() - macro.defaults.size();
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const auto& [parameter, slot] = macro.parameters[i];
    if (!frame().slots[slot].is_missing()) continue;
    Value v = i >= without_default ? Evaluate(*macro.defaults[i - without_default])
                                   : MakeUndefined(heap(), base::StrCat("parameter '", parameter, "' was not provided"));
    frame().slots[slot] = std::move(v);
  }
  Value text;
  Capture(text, [&] { return Execute(macro.body); });
  frame_ = std::move(caller);
  line = call_line;
  return text;
}

void Interpreter::Block(const BlockStatement& block) {
  auto outer = visible_;
  if (block.scoped) {
    for (const auto& [name, reference] : block.visible) {
      if (const Value& v = Slot(reference); !v.is_missing()) visible_.insert(visible_.begin(), {name, v});
    }
  }
  RunBlock(block);
  visible_ = std::move(outer);
}

void Interpreter::RunBlock(const BlockStatement& block) {
  DepthGuard guard(*this);
  if (block.required) Fail("TemplateRuntimeError", "Required block '", block.name, "' not found");
  Value caller = std::exchange(frame_, NewFrame(block.function, Value()));
  ++blocks_;
  bool escaping = std::exchange(autoescape, false);  // a block is compiled apart from what is around it
  if (block.uses_self) frame().slots[block.self_slot] = MakeSelf(*this);
  if (block.uses_super) {
    frame().slots[block.super_slot] = MakeUndefined(heap(), base::StrCat("there is no parent block called '", block.name, "'."));
  }
  Enter(block.scope);
  Execute(block.body);
  autoescape = escaping;
  --blocks_;
  frame_ = std::move(caller);
}

Value Interpreter::RenderBlock(const BlockStatement& block) {
  Value text;
  Capture(text, [&] {
    RunBlock(block);
    return Flow::kNext;
  });
  return text;
}

}  // namespace halfbyte::text::jinja
