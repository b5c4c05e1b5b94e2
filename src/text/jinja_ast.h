// The parsed template. Every node knows its line; expressions also know how deep they are, so that neither evaluating nor
// destroying a tree can exhaust the stack.
//
// Variables are resolved to slots before the first render (jinja_scope.h): a Reference names the frame, counted outwards
// over functions (macros, call blocks, recursive loops, blocks), and the slot in it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/jinja_filters.h"
#include "text/jinja_operations.h"
#include "text/jinja_tests.h"
#include "text/jinja_value.h"

namespace halfbyte::text::jinja {

struct Reference {
  uint32_t up = 0;
  uint32_t slot = 0;
};

enum class ExprKind {
  kConst, kName, kNamespaceItem, kTuple, kList, kDict, kNot, kNegate, kPlus, kBinary, kAnd, kOr, kCompare, kConcat, kCondition,
  kGetAttribute, kGetItem, kSlice, kCall, kFilter, kTest,
};

struct Expr {
  Expr(ExprKind k, int l) : kind(k), line(l) {}
  virtual ~Expr() = default;
  ExprKind kind;
  int line;
  int depth = 1;
};
using ExprPtr = std::unique_ptr<Expr>;

struct ConstExpr : Expr {
  ConstExpr(int line, Value v) : Expr(ExprKind::kConst, line), value(std::move(v)) {}
  ConstExpr(int line, std::string s) : Expr(ExprKind::kConst, line), text(std::move(s)), value(Value::Borrowed(text)) {}
  std::string text;  // what a string value views
  Value value;       // never on a heap: renders in several threads copy it
};
struct NameExpr : Expr {
  NameExpr(int line, std::string n) : Expr(ExprKind::kName, line), name(std::move(n)) {}
  std::string name;
  Reference reference;
};
struct NamespaceItemExpr : Expr {  // {% set ns.name = ... %}
  NamespaceItemExpr(int line, std::string o, std::string a)
      : Expr(ExprKind::kNamespaceItem, line), object(line, std::move(o)), attribute(std::move(a)) {}
  NameExpr object;
  std::string attribute;
};
struct ItemsExpr : Expr {  // kTuple, kList, kConcat
  ItemsExpr(ExprKind k, int line) : Expr(k, line) {}
  std::vector<ExprPtr> items;
};
struct DictExpr : Expr {
  explicit DictExpr(int line) : Expr(ExprKind::kDict, line) {}
  std::vector<std::pair<ExprPtr, ExprPtr>> items;
};
struct UnaryExpr : Expr {  // kNot, kNegate, kPlus
  using Expr::Expr;
  ExprPtr operand;
};
struct BinaryExpr : Expr {  // kBinary, kAnd, kOr
  using Expr::Expr;
  BinaryOperator op{};
  ExprPtr left, right;
};
enum class Comparison { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };
struct CompareExpr : Expr {
  explicit CompareExpr(int line) : Expr(ExprKind::kCompare, line) {}
  ExprPtr first;
  std::vector<std::pair<Comparison, ExprPtr>> rest;
};
struct ConditionExpr : Expr {  // a if test else b
  explicit ConditionExpr(int line) : Expr(ExprKind::kCondition, line) {}
  ExprPtr test, yes, no;  // `no` may be absent
};
struct GetAttributeExpr : Expr {
  GetAttributeExpr(int line, ExprPtr o, std::string n)
      : Expr(ExprKind::kGetAttribute, line), object(std::move(o)), name(std::move(n)), on_dict(IsDictAttribute(name)) {}
  ExprPtr object;
  std::string name;
  bool on_dict;  // dicts have such an attribute; where not, the dot is an item access at once
};
struct GetItemExpr : Expr {
  explicit GetItemExpr(int line) : Expr(ExprKind::kGetItem, line) {}
  ExprPtr object, key;
};
struct SliceExpr : Expr {  // object[start:stop:step]
  explicit SliceExpr(int line) : Expr(ExprKind::kSlice, line) {}
  ExprPtr object, start, stop, step;
};
struct CallArguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> keyword;
  ExprPtr spread, keyword_spread;  // *args, **kwargs
};
struct CallExpr : Expr {
  explicit CallExpr(int line) : Expr(ExprKind::kCall, line) {}
  ExprPtr callee;
  CallArguments arguments;
};
struct FilterExpr : Expr {
  explicit FilterExpr(int line) : Expr(ExprKind::kFilter, line) {}
  ExprPtr target;  // absent for the innermost filter of a {% filter %} or {% set x | filter %}: the block's text
  std::string name;
  FilterFunction function = nullptr;
  CallArguments arguments;
};
struct TestExpr : Expr {
  explicit TestExpr(int line) : Expr(ExprKind::kTest, line) {}
  ExprPtr target;
  std::string name;
  TestFunction function = nullptr;
  CallArguments arguments;
};

enum class StatementKind {
  kOutput, kFor, kIf, kSet, kSetBlock, kMacro, kCallBlock, kFilterBlock, kWith, kAutoescape, kBlock, kScope, kBreak, kContinue,
  kNoLoader,
};

struct Statement {
  Statement(StatementKind k, int l) : kind(k), line(l) {}
  virtual ~Statement() = default;
  StatementKind kind;
  int line;
};
using Body = std::vector<std::unique_ptr<Statement>>;

// What a scope does with a slot when it is entered.
struct SlotStart {
  enum class From { kUnset, kContext, kOuter };
  uint32_t slot = 0;
  From from = From::kUnset;
  Reference outer;   // kOuter: the variable of the same name further out
  std::string name;  // kContext
};
struct ScopeLayout {
  uint32_t first_slot = 0, slot_count = 0;  // in the frame of the function around it
  std::vector<SlotStart> starts;
};
struct FunctionLayout {
  uint32_t slot_count = 0;  // of all its scopes
};

struct OutputStatement : Statement {
  explicit OutputStatement(int line) : Statement(StatementKind::kOutput, line) {}
  struct Item {
    std::string data;
    ExprPtr expression;  // absent: data
  };
  std::vector<Item> items;
};
struct ForStatement : Statement {
  explicit ForStatement(int line) : Statement(StatementKind::kFor, line) {}
  ExprPtr target, iterable, test;
  ExprPtr test_target;  // the target once more, in the scope of the test
  bool recursive = false;
  Body body, otherwise;
  ScopeLayout scope, test_scope, else_scope;
  uint32_t loop_slot = 0;
  FunctionLayout function;  // where it is recursive
};
struct IfStatement : Statement {
  explicit IfStatement(int line) : Statement(StatementKind::kIf, line) {}
  struct Branch {
    ExprPtr test;  // absent: else
    Body body;
  };
  std::vector<Branch> branches;
};
struct SetStatement : Statement {
  explicit SetStatement(int line) : Statement(StatementKind::kSet, line) {}
  ExprPtr target, value;
};
struct SetBlockStatement : Statement {
  explicit SetBlockStatement(int line) : Statement(StatementKind::kSetBlock, line) {}
  ExprPtr target, filter;  // filter may be absent
  Body body;
  ScopeLayout scope;
};
struct MacroSignature {
  std::vector<std::pair<std::string, uint32_t>> parameters;  // name, slot
  std::vector<ExprPtr> defaults;                             // of the last parameters
  bool uses_caller = false, uses_kwargs = false, uses_varargs = false;
  bool explicit_caller = false;
  uint32_t caller_slot = 0, kwargs_slot = 0, varargs_slot = 0;
  Body body;
  ScopeLayout scope;
  FunctionLayout function;
};
struct MacroStatement : Statement {
  explicit MacroStatement(int line) : Statement(StatementKind::kMacro, line), name(line, "") {}
  NameExpr name;
  MacroSignature macro;
};
struct CallBlockStatement : Statement {
  explicit CallBlockStatement(int line) : Statement(StatementKind::kCallBlock, line) {}
  ExprPtr call;  // a CallExpr
  MacroSignature macro;
};
struct FilterBlockStatement : Statement {
  explicit FilterBlockStatement(int line) : Statement(StatementKind::kFilterBlock, line) {}
  ExprPtr filter;
  Body body;
  ScopeLayout scope;
};
struct WithStatement : Statement {
  explicit WithStatement(int line) : Statement(StatementKind::kWith, line) {}
  std::vector<std::pair<ExprPtr, ExprPtr>> assignments;  // target, value
  Body body;
  ScopeLayout scope;
};
struct ScopeStatement : Statement {  // kAutoescape (with `value`), kScope ({% generation %})
  using Statement::Statement;
  ExprPtr value;
  Body body;
  ScopeLayout scope;
};
struct BlockStatement : Statement {
  explicit BlockStatement(int line) : Statement(StatementKind::kBlock, line) {}
  std::string name;
  bool scoped = false, required = false;
  std::vector<std::pair<std::string, Reference>> visible;  // scoped: the variables around it
  Body body;
  ScopeLayout scope;
  FunctionLayout function;
  bool uses_self = false, uses_super = false;
  uint32_t self_slot = 0, super_slot = 0;
};
struct NoLoaderStatement : Statement {  // include, import, from, extends: there is nothing to load from
  explicit NoLoaderStatement(int line) : Statement(StatementKind::kNoLoader, line) {}
  ExprPtr source;
  std::vector<NameExpr> names;
};

struct TemplateTree {
  Body body;
  ScopeLayout scope;
  FunctionLayout function;
  bool uses_self = false;
  uint32_t self_slot = 0;
  std::vector<std::pair<std::string, uint32_t>> exported;  // variables of the top level, which blocks see
  std::vector<BlockStatement*> blocks;
};

}  // namespace halfbyte::text::jinja
