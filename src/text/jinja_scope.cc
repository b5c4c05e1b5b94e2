#include "text/jinja_scope.h"

#include <map>
#include <set>

#include "text/jinja_error.h"
#include "text/jinja_walk.h"

namespace halfbyte::text::jinja {
namespace {

// A scope being laid out: first every name of its own body is recorded (Collect), then the references in it are bound and
// the scopes inside it are laid out (Bind).
struct Scope {
  Scope(Scope* p, FunctionLayout& f, int l, ScopeLayout& s) : parent(p), function(f), level(l), layout(s) {
    layout.first_slot = function.slot_count;
  }
  Scope* parent;
  FunctionLayout& function;
  int level;  // functions around it
  ScopeLayout& layout;
  std::map<std::string, uint32_t, std::less<>> slots;
  std::set<std::string, std::less<>> stores;

  uint32_t NewSlot(const std::string& name) {
    ++layout.slot_count;
    return slots[name] = function.slot_count++;
  }
  const Scope* Owner(std::string_view name) const {
    for (const Scope* s = this; s != nullptr; s = s->parent) {
      if (s->slots.contains(name)) return s;
    }
    return nullptr;
  }
  Reference Refer(const Scope& owner, std::string_view name) const {
    return {static_cast<uint32_t>(level - owner.level), owner.slots.find(name)->second};
  }
  void Load(const std::string& name) {
    if (Owner(name) == nullptr) layout.starts.push_back({NewSlot(name), SlotStart::From::kContext, {}, name});
  }
  void Store(const std::string& name, bool in_if) {
    stores.insert(name);
    if (slots.contains(name)) return;
    const Scope* outer = parent == nullptr ? nullptr : parent->Owner(name);
    SlotStart start;
    if (outer != nullptr) {
      start.from = SlotStart::From::kOuter;
      start.outer = Refer(*outer, name);
    } else if (in_if) {
      start.from = SlotStart::From::kContext;
      start.name = name;
    }
    start.slot = NewSlot(name);
    layout.starts.push_back(std::move(start));
  }
  uint32_t Parameter(const std::string& name) {
    stores.insert(name);
    return NewSlot(name);
  }
};

class Resolver {
 public:
  explicit Resolver(TemplateTree& tree) : tree_(tree) {}

  void Run() {
    Scope root(nullptr, tree_.function, 0, tree_.scope);
    tree_.uses_self = ReadsName(tree_.body, "self");
    if (tree_.uses_self) tree_.self_slot = root.Parameter("self");
    Collect(root, tree_.body, 0);
    for (const std::string& name : root.stores) tree_.exported.emplace_back(name, root.slots[name]);
    Bind(root, tree_.body, false);
  }

 private:
  // --- First pass over a scope: its names ---

  void CollectExpr(Scope& scope, const Expr& e) {
    if (e.kind == ExprKind::kName) scope.Load(static_cast<const NameExpr&>(e).name);
    ForEachChild(e, [&](const Expr& child) { CollectExpr(scope, child); });
  }
  void CollectExpr(Scope& scope, const ExprPtr& e) { if (e != nullptr) CollectExpr(scope, *e); }

  void CollectTarget(Scope& scope, const Expr& target, int in_if) {
    if (target.kind == ExprKind::kName) scope.Store(static_cast<const NameExpr&>(target).name, in_if > 0);
    else if (target.kind == ExprKind::kTuple)
      for (const ExprPtr& item : static_cast<const ItemsExpr&>(target).items) CollectTarget(scope, *item, in_if);
    else CollectExpr(scope, target);
  }

  void CollectParameters(Scope& scope, const Expr& target) {
    if (target.kind == ExprKind::kName) scope.Parameter(static_cast<const NameExpr&>(target).name);
    else if (target.kind == ExprKind::kTuple)
      for (const ExprPtr& item : static_cast<const ItemsExpr&>(target).items) CollectParameters(scope, *item);
  }

  void Collect(Scope& scope, const Body& body, int in_if) {
    for (const auto& s : body) CollectStatement(scope, *s, in_if);
  }

  void CollectStatement(Scope& scope, const Statement& s, int in_if) {
    switch (s.kind) {
      case StatementKind::kOutput:
        for (const auto& item : static_cast<const OutputStatement&>(s).items) CollectExpr(scope, item.expression);
        break;
      case StatementKind::kFor: CollectExpr(scope, static_cast<const ForStatement&>(s).iterable); break;
      case StatementKind::kIf:
        for (const auto& branch : static_cast<const IfStatement&>(s).branches) {
          CollectExpr(scope, branch.test);
          Collect(scope, branch.body, in_if + 1);
        }
        break;
      case StatementKind::kSet:
        CollectExpr(scope, static_cast<const SetStatement&>(s).value);
        CollectTarget(scope, *static_cast<const SetStatement&>(s).target, in_if);
        break;
      case StatementKind::kSetBlock: CollectTarget(scope, *static_cast<const SetBlockStatement&>(s).target, in_if); break;
      case StatementKind::kMacro: scope.Store(static_cast<const MacroStatement&>(s).name.name, in_if > 0); break;
      case StatementKind::kCallBlock: CollectExpr(scope, static_cast<const CallBlockStatement&>(s).call); break;
      case StatementKind::kFilterBlock: CollectExpr(scope, static_cast<const FilterBlockStatement&>(s).filter); break;
      case StatementKind::kWith:
        for (const auto& [target, value] : static_cast<const WithStatement&>(s).assignments) CollectExpr(scope, value);
        break;
      case StatementKind::kNoLoader:
        CollectExpr(scope, static_cast<const NoLoaderStatement&>(s).source);
        for (const NameExpr& name : static_cast<const NoLoaderStatement&>(s).names) scope.Store(name.name, in_if > 0);
        break;
      case StatementKind::kAutoescape: case StatementKind::kScope: case StatementKind::kBlock: case StatementKind::kBreak:
      case StatementKind::kContinue: break;
    }
  }

  // --- Second pass: references, and the scopes inside ---
  // `soft`: directly in an if, where an unknown filter or test fails only when it is reached.

  void BindExpr(const Scope& scope, Expr& e, bool soft) {
    if (e.kind == ExprKind::kName) {
      auto& name = static_cast<NameExpr&>(e);
      name.reference = scope.Refer(*scope.Owner(name.name), name.name);
      return;
    }
    if (e.kind == ExprKind::kFilter && static_cast<FilterExpr&>(e).function == nullptr && !soft) {
      FailSyntax(e.line, "No filter named '", static_cast<FilterExpr&>(e).name, "'.");
    }
    if (e.kind == ExprKind::kTest && static_cast<TestExpr&>(e).function == nullptr && !soft) {
      FailSyntax(e.line, "No test named '", static_cast<TestExpr&>(e).name, "'.");
    }
    soft |= e.kind == ExprKind::kCondition;
    ForEachChild(e, [&](const Expr& child) { BindExpr(scope, const_cast<Expr&>(child), soft); });
  }
  void BindExpr(const Scope& scope, const ExprPtr& e, bool soft) { if (e != nullptr) BindExpr(scope, *e, soft); }

  void Bind(Scope& scope, const Body& body, bool soft) {
    for (const auto& s : body) BindStatement(scope, *s, soft);
  }

  void BindStatement(Scope& scope, Statement& s, bool soft) {
    switch (s.kind) {
      case StatementKind::kOutput:
        for (const auto& item : static_cast<OutputStatement&>(s).items) BindExpr(scope, item.expression, soft);
        break;
      case StatementKind::kFor: BindFor(scope, static_cast<ForStatement&>(s), soft); break;
      case StatementKind::kIf:
        for (const auto& branch : static_cast<IfStatement&>(s).branches) {
          BindExpr(scope, branch.test, true);
          Bind(scope, branch.body, true);
        }
        break;
      case StatementKind::kSet:
        BindExpr(scope, static_cast<SetStatement&>(s).value, soft);
        BindExpr(scope, static_cast<SetStatement&>(s).target, soft);
        break;
      case StatementKind::kSetBlock: {
        auto& set = static_cast<SetBlockStatement&>(s);
        Inner(scope, set.scope, set.body, set.filter);
        BindExpr(scope, set.target, soft);
        break;
      }
      case StatementKind::kMacro:
        BindExpr(scope, static_cast<MacroStatement&>(s).name, soft);
        BindMacro(scope, static_cast<MacroStatement&>(s).macro, s.line);
        break;
      case StatementKind::kCallBlock:
        BindExpr(scope, static_cast<CallBlockStatement&>(s).call, soft);
        BindMacro(scope, static_cast<CallBlockStatement&>(s).macro, s.line);
        break;
      case StatementKind::kFilterBlock:
        Inner(scope, static_cast<FilterBlockStatement&>(s).scope, static_cast<FilterBlockStatement&>(s).body,
              static_cast<FilterBlockStatement&>(s).filter);
        break;
      case StatementKind::kWith: BindWith(scope, static_cast<WithStatement&>(s), soft); break;
      case StatementKind::kAutoescape: case StatementKind::kScope:
        Inner(scope, static_cast<ScopeStatement&>(s).scope, static_cast<ScopeStatement&>(s).body,
              static_cast<ScopeStatement&>(s).value);
        break;
      case StatementKind::kBlock: BindBlock(scope, static_cast<BlockStatement&>(s)); break;
      case StatementKind::kNoLoader: BindExpr(scope, static_cast<NoLoaderStatement&>(s).source, soft); break;
      case StatementKind::kBreak: case StatementKind::kContinue: break;
    }
  }

  // A scope in the same function that holds a body and perhaps an expression that is evaluated in it.
  void Inner(Scope& outer, ScopeLayout& layout, const Body& body, const ExprPtr& expression) {
    Scope scope(&outer, outer.function, outer.level, layout);
    CollectExpr(scope, expression);
    Collect(scope, body, 0);
    BindExpr(scope, expression, false);
    Bind(scope, body, false);
  }

  void BindFor(Scope& outer, ForStatement& loop, bool soft) {
    BindExpr(outer, loop.iterable, soft);
    FunctionLayout& function = loop.recursive ? loop.function : outer.function;
    int level = outer.level + loop.recursive;
    if (loop.test != nullptr) {
      Scope test(&outer, function, level, loop.test_scope);
      CollectParameters(test, *loop.test_target);
      CollectExpr(test, loop.test);
      BindExpr(test, loop.test_target, false);
      BindExpr(test, loop.test, false);
    }
    Scope body(&outer, function, level, loop.scope);
    loop.loop_slot = body.Parameter("loop");
    CollectParameters(body, *loop.target);
    Collect(body, loop.body, 0);
    BindExpr(body, loop.target, false);
    Bind(body, loop.body, false);
    Scope otherwise(&outer, function, level, loop.else_scope);
    Collect(otherwise, loop.otherwise, 0);
    Bind(otherwise, loop.otherwise, false);
  }

  void BindWith(Scope& outer, WithStatement& with, bool soft) {
    Scope scope(&outer, outer.function, outer.level, with.scope);
    for (const auto& [target, value] : with.assignments) CollectParameters(scope, *target);
    Collect(scope, with.body, 0);
    for (const auto& [target, value] : with.assignments) {
      BindExpr(outer, value, soft);
      BindExpr(scope, target, false);
    }
    Bind(scope, with.body, false);
  }

  void BindMacro(Scope& outer, MacroSignature& macro, int line) {
    Scope scope(&outer, macro.function, outer.level + 1, macro.scope);
    bool own_kwargs = false, own_varargs = false;
    for (auto& [name, slot] : macro.parameters) {
      slot = scope.Parameter(name);
      own_kwargs |= name == "kwargs";
      own_varargs |= name == "varargs";
    }
    macro.uses_caller = ReadsName(macro.body, "caller");
    macro.uses_kwargs = !own_kwargs && ReadsName(macro.body, "kwargs");
    macro.uses_varargs = !own_varargs && ReadsName(macro.body, "varargs");
    if (macro.uses_caller && macro.explicit_caller) CheckCallerDefault(macro, line);
    if (macro.uses_caller && !macro.explicit_caller) macro.caller_slot = scope.Parameter("caller");
    if (macro.uses_kwargs) macro.kwargs_slot = scope.Parameter("kwargs");
    if (macro.uses_varargs) macro.varargs_slot = scope.Parameter("varargs");
    for (const ExprPtr& e : macro.defaults) CollectExpr(scope, e);
    Collect(scope, macro.body, 0);
    for (const ExprPtr& e : macro.defaults) BindExpr(scope, e, false);
    Bind(scope, macro.body, false);
  }

  static void CheckCallerDefault(const MacroSignature& macro, int line) {
    size_t without_default = macro.parameters.size() - macro.defaults.size();
    for (size_t i = 0; i < without_default; ++i) {
      if (macro.parameters[i].first == "caller") {
        FailSyntax(line, "the special \"caller\" argument must be omitted or be given a default");
      }
    }
  }

  void BindBlock(Scope& outer, BlockStatement& block) {
    if (block.scoped) {
      std::set<std::string_view> seen;
      for (const Scope* s = &outer; s != nullptr; s = s->parent) {
        for (const std::string& name : s->stores) {
          if (seen.insert(name).second) block.visible.emplace_back(name, outer.Refer(*s, name));
        }
      }
    }
    Scope scope(nullptr, block.function, 0, block.scope);
    block.uses_self = ReadsName(block.body, "self");
    block.uses_super = ReadsName(block.body, "super");
    if (block.uses_self) block.self_slot = scope.Parameter("self");
    if (block.uses_super) block.super_slot = scope.Parameter("super");
    Collect(scope, block.body, 0);
    Bind(scope, block.body, false);
  }

  TemplateTree& tree_;
};

}  // namespace

void ResolveNames(TemplateTree& tree) { Resolver(tree).Run(); }

}  // namespace halfbyte::text::jinja
