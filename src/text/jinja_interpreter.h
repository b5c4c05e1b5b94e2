// Runs a template's tree: statements write to the current buffer, expressions give values.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "base/json.h"
#include "text/jinja_ast.h"
#include "text/jinja_loop.h"

namespace halfbyte::text::jinja {

// The variables of a running function: the template, a macro, a call block, a recursive loop or a block.
struct FrameObject : Object {
  FrameObject(Heap& heap, uint32_t size, Value p)
      : Object(heap, sizeof(FrameObject) + size * sizeof(Value)), slots(size), parent(std::move(p)) {}
  void Clear() override { slots.clear(); parent = Value(); }
  std::vector<Value> slots;
  Value parent;  // kFrame, or missing
};

class Interpreter : public Runtime {
 public:
  Interpreter(const TemplateTree& tree, const base::Json& context, const JinjaRenderOptions& options)
      : Runtime(options), tree_(tree), context_(context) {}

  // Throws TemplateError; `line` then tells where.
  std::string Run();

  // For the callables and iterators that the interpreter hands to templates.
  Value CallMacro(const MacroSignature& macro, std::string_view name, const Value& frame, const Arguments& arguments);
  Value RecurseLoop(const ForStatement& loop, const Value& outer, const Value& iterable, int64_t depth);
  bool PassesTest(const ForStatement& loop, const Value& frame, const Value& item);
  Value RenderBlock(const BlockStatement& block);
  const TemplateTree& tree() const { return tree_; }

 private:
  enum class Flow { kNext, kBreak, kContinue };

  Flow Execute(const Body& body);
  Flow Execute(const Statement& statement);
  void Output(const OutputStatement& output);
  Flow For(const ForStatement& loop);
  Flow RunLoop(const ForStatement& loop, const Value& iterable, int64_t depth, const Value& recurse);
  Flow If(const IfStatement& statement);
  void Set(const SetStatement& set);
  Flow SetBlock(const SetBlockStatement& set);
  void Macro(const MacroStatement& macro);
  void CallBlock(const CallBlockStatement& call);
  Flow FilterBlock(const FilterBlockStatement& filter);
  Flow With(const WithStatement& with);
  Flow Scoped(const ScopeStatement& scope);
  void Block(const BlockStatement& block);
  void RunBlock(const BlockStatement& block);

  void Write(std::string_view text);
  void WriteValue(const Value& v);
  // Runs `f`, which returns a Flow, with a buffer of its own, and gives what was written as a string.
  template <typename F>
  Flow Capture(Value& text, F f);

  void Enter(const ScopeLayout& scope);
  void Leave(const ScopeLayout& scope);
  Value NewFrame(const FunctionLayout& function, const Value& parent);
  FrameObject& frame() { return frame_.As<FrameObject>(); }
  Value& Slot(Reference reference);
  Value Resolve(const std::string& name);
  void Assign(const Expr& target, const Value& v);
  void AssignTuple(const ItemsExpr& target, const Value& v);
  void CheckNamespaces(const Expr& target);
  void BindMacroArguments(const MacroSignature& macro, std::string_view name, const Arguments& arguments);

  Value Evaluate(const Expr& e);
  Value EvaluateOr(const ExprPtr& e) { return e == nullptr ? Value() : Evaluate(*e); }
  std::vector<Value> EvaluateAll(const std::vector<ExprPtr>& items);
  Value Dict(const DictExpr& e);
  Value Compare(const CompareExpr& e);
  bool Compare(Comparison op, const Value& a, const Value& b);
  Value Condition(const ConditionExpr& e);
  Value Attribute(const GetAttributeExpr& e, const Value& object);
  Value Call(const CallExpr& e, const Value* caller);
  Value Filter(const FilterExpr& e, const Value* block_text);
  Value Test(const TestExpr& e);
  Arguments EvaluateArguments(const CallArguments& e);
  void SpreadKeywords(const Value& mapping, Arguments& arguments);

  const TemplateTree& tree_;
  const base::Json& context_;
  std::unordered_map<std::string_view, Value> variables_;  // of the context and the globals, as they were asked for
  std::vector<std::pair<std::string_view, Value>> visible_;  // what a scoped block sees besides
  int blocks_ = 0;                                           // blocks being rendered
  Value root_, frame_;
  std::string* out_ = nullptr;
  size_t buffered_ = 0;  // bytes in all buffers
};

// A Value for a JSON value: strings are borrowed from it.
Value FromJson(Runtime& r, const base::Json& json);
// A global function (range, namespace, ...); missing where there is none of that name.
Value FindGlobal(Runtime& r, std::string_view name);

}  // namespace halfbyte::text::jinja
