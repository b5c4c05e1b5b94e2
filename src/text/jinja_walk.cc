#include "text/jinja_walk.h"

#include <algorithm>

namespace halfbyte::text::jinja {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view name) : name_(name) {}

  bool In(const Body& body) {
    return std::any_of(body.begin(), body.end(), [&](const auto& s) { return In(*s); });
  }

 private:
  bool In(const Expr& e) {
    if (e.kind == ExprKind::kName) return static_cast<const NameExpr&>(e).name == name_;
    bool found = false;
    ForEachChild(e, [&](const Expr& child) { found = found || In(child); });
    return found;
  }
  bool In(const ExprPtr& e) { return e != nullptr && In(*e); }
  bool In(const MacroSignature& macro) {
    return std::any_of(macro.defaults.begin(), macro.defaults.end(), [&](const ExprPtr& e) { return In(e); }) || In(macro.body);
  }

  bool In(const Statement& s) {
    switch (s.kind) {
      case StatementKind::kOutput: {
        const auto& items = static_cast<const OutputStatement&>(s).items;
        return std::any_of(items.begin(), items.end(), [&](const auto& item) { return In(item.expression); });
      }
      case StatementKind::kFor: {
        const auto& loop = static_cast<const ForStatement&>(s);
        return In(loop.iterable) || In(loop.test) || In(loop.body) || In(loop.otherwise);
      }
      case StatementKind::kIf: {
        const auto& branches = static_cast<const IfStatement&>(s).branches;
        return std::any_of(branches.begin(), branches.end(), [&](const auto& b) { return In(b.test) || In(b.body); });
      }
      case StatementKind::kSet: return In(static_cast<const SetStatement&>(s).value);
      case StatementKind::kSetBlock:
        return In(static_cast<const SetBlockStatement&>(s).filter) || In(static_cast<const SetBlockStatement&>(s).body);
      case StatementKind::kMacro: return In(static_cast<const MacroStatement&>(s).macro);
      case StatementKind::kCallBlock:
        return In(static_cast<const CallBlockStatement&>(s).call) || In(static_cast<const CallBlockStatement&>(s).macro);
      case StatementKind::kFilterBlock:
        return In(static_cast<const FilterBlockStatement&>(s).filter) || In(static_cast<const FilterBlockStatement&>(s).body);
      case StatementKind::kWith: {
        const auto& with = static_cast<const WithStatement&>(s);
        return std::any_of(with.assignments.begin(), with.assignments.end(), [&](const auto& a) { return In(a.second); }) ||
               In(with.body);
      }
      case StatementKind::kAutoescape: case StatementKind::kScope:
        return In(static_cast<const ScopeStatement&>(s).value) || In(static_cast<const ScopeStatement&>(s).body);
      case StatementKind::kNoLoader: return In(static_cast<const NoLoaderStatement&>(s).source);
      case StatementKind::kBlock: case StatementKind::kBreak: case StatementKind::kContinue: return false;
    }
    return false;
  }

  std::string_view name_;
};

}  // namespace

bool ReadsName(const Body& body, std::string_view name) { return Reader(name).In(body); }

}  // namespace halfbyte::text::jinja
