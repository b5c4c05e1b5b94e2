#include "text/jinja_macro.h"

#include "text/jinja_self.h"
#include "text/jinja_text.h"

namespace halfbyte::text::jinja {
namespace {

using Kind = Value::Kind;

class MacroObject : public CallableObject {
 public:
  MacroObject(Interpreter& in, const MacroSignature& macro, std::string_view name, const Value& frame)
      : CallableObject(in.heap(), sizeof(MacroObject)), in_(in), macro_(macro), name_(name), frame_(frame) {}
  void Clear() override { frame_ = Value(); }

  Value Call(Runtime&, const Arguments& arguments) override { return in_.CallMacro(macro_, name_, frame_, arguments); }

  bool Attribute(Runtime& r, std::string_view name, Value& out) override {
    if (name == "name") {
      out = name_.empty() ? Value::None() : Value::Borrowed(name_);
    } else if (name == "arguments") {
      std::vector<Value> names;
      for (const auto& parameter : macro_.parameters) names.push_back(Value::Borrowed(parameter.first));
      out = r.Tuple(std::move(names));
    } else if (name == "catch_kwargs") {
      out = Value::Bool(macro_.uses_kwargs);
    } else if (name == "catch_varargs") {
      out = Value::Bool(macro_.uses_varargs);
    } else if (name == "caller") {
      out = Value::Bool(macro_.uses_caller);
    } else if (name == "explicit_caller") {
      out = Value::Bool(macro_.explicit_caller);
    } else {
      return false;
    }
    return true;
  }

  std::string Describe() const override {
    std::string text = "<Macro ";
    if (name_.empty()) text += "anonymous";
    else AppendStringRepr(text, name_);
    return text + ">";
  }
  const char* type_name() const override { return "Macro"; }

 private:
  Interpreter& in_;
  const MacroSignature& macro_;
  std::string_view name_;
  Value frame_;
};

class LoopRecursion : public CallableObject {
 public:
  LoopRecursion(Interpreter& in, const ForStatement& loop, const Value& outer)
      : CallableObject(in.heap(), sizeof(LoopRecursion)), in_(in), loop_(loop), outer_(outer) {}
  void Clear() override { outer_ = Value(); }
  Value Call(Runtime&, const Arguments& a) override {
    return in_.RecurseLoop(loop_, outer_, a.positional[0], static_cast<int64_t>(a.positional[1].integer()));
  }
  std::string Describe() const override { return "<function loop>"; }

 private:
  Interpreter& in_;
  const ForStatement& loop_;
  Value outer_;
};

class FilteredIterator : public IteratorObject {
 public:
  FilteredIterator(Interpreter& in, const ForStatement& loop, const Value& frame, const Value& iterable)
      : IteratorObject(in.heap(), sizeof(FilteredIterator), "generator"), in_(in), loop_(loop), frame_(frame),
        cursor_(std::in_place, in, iterable) {}
  void Clear() override { frame_ = Value(); cursor_.reset(); }
  bool Next(Runtime&, Value& item) override {
    while (cursor_->Next(item)) {
      if (in_.PassesTest(loop_, frame_, item)) return true;
    }
    return false;
  }

 private:
  Interpreter& in_;
  const ForStatement& loop_;
  Value frame_;
  std::optional<Cursor> cursor_;
};

class BlockReference : public CallableObject {
 public:
  BlockReference(Interpreter& in, const BlockStatement& block)
      : CallableObject(in.heap(), sizeof(BlockReference)), in_(in), block_(block) {}
  Value Call(Runtime&, const Arguments& a) override {
    if (!a.positional.empty() || !a.keyword.empty()) Fail("TypeError", "a block takes no arguments");
    return in_.RenderBlock(block_);
  }
  std::string Describe() const override { return "<BlockReference object>"; }
  const char* type_name() const override { return "BlockReference"; }

 private:
  Interpreter& in_;
  const BlockStatement& block_;
};

struct TemplateSelf : SelfObject {
  explicit TemplateSelf(Interpreter& i) : SelfObject(i.heap()), in(i) {}
  bool FindBlock(Runtime&, std::string_view name, Value& out) override {
    for (const BlockStatement* block : in.tree().blocks) {
      if (block->name != name) continue;
      out = Value::Of(Kind::kCallable, new BlockReference(in, *block));
      return true;
    }
    return false;
  }
  Interpreter& in;
};

}  // namespace

Value MakeMacro(Interpreter& in, const MacroSignature& macro, std::string_view name, const Value& frame) {
  return Value::Of(Kind::kCallable, new MacroObject(in, macro, name, frame));
}
Value MakeLoopRecursion(Interpreter& in, const ForStatement& loop, const Value& outer) {
  return Value::Of(Kind::kCallable, new LoopRecursion(in, loop, outer));
}
Value MakeFilteredIterator(Interpreter& in, const ForStatement& loop, const Value& frame, const Value& iterable) {
  return Value::Of(Kind::kIterator, new FilteredIterator(in, loop, frame, iterable));
}
Value MakeSelf(Interpreter& in) { return Value::Of(Kind::kSelf, new TemplateSelf(in)); }

void SetNamespaceItem(const Value& ns, const Value& name, const Value& v) {
  if (name.text().starts_with("_")) {
    Fail("SecurityError", "Chat templates cannot store underscore-prefixed attributes on a namespace, but got '", name.text(),
         "'. Please rename the attribute.");
  }
  ns.As<NamespaceObject>().attributes.As<DictObject>().Set(name, v);
}

}  // namespace halfbyte::text::jinja
