// What lives on a render's heap: the containers, iterators and callables behind a Value. Lists, tuples and dicts do not
// change once they are built (the sandbox refuses append, update and the like); only namespaces and loops do.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_value.h"

namespace halfbyte::text::jinja {

class Runtime;

struct StringObject : Object {
  StringObject(Heap& heap, std::string s) : Object(heap, sizeof(StringObject) + s.size()), text(std::move(s)) {}
  std::string text;
};

// list and tuple
struct SequenceObject : Object {
  SequenceObject(Heap& heap, std::vector<Value> v)
      : Object(heap, sizeof(SequenceObject) + v.size() * sizeof(Value)), items(std::move(v)) {}
  void Clear() override { items.clear(); }
  std::vector<Value> items;
  bool is_group = false;  // a tuple of |groupby: also has .grouper and .list
};

// dict: entries in the order of insertion. Up to kSearched of them are searched; beyond, an index sorted by key is kept
// (not a hash table, so that chosen keys cannot make it slow).
class DictObject : public Object {
 public:
  explicit DictObject(Heap& heap) : Object(heap, sizeof(DictObject)) {}
  void Clear() override { entries_.clear(); }

  // nullptr where it is absent. An unhashable key is a TypeError.
  const Value* Find(const Value& key) const;
  const Value* Find(std::string_view key) const;
  void Set(const Value& key, Value value);  // keeps the first key's place and form, as Python does
  const std::vector<std::pair<Value, Value>>& entries() const { return entries_; }
  size_t size() const { return entries_.size(); }

 private:
  static constexpr size_t kSearched = 8;
  size_t Search(const Value& key) const;  // the entry's place, or size()

  std::vector<std::pair<Value, Value>> entries_;
  std::vector<uint32_t> index_;  // places of entries in the order of their keys; empty while searched
};

struct RangeObject : Object {
  RangeObject(Heap& heap, int64_t first, int64_t stop, int64_t step);
  int64_t start, stop, step, size;
};

// d.keys(), d.values(), d.items()
struct ViewObject : Object {
  enum class What { kKeys, kValues, kItems };
  ViewObject(Heap& heap, Value d, What w) : Object(heap, sizeof(ViewObject)), dict(std::move(d)), what(w) {}
  void Clear() override { dict = Value(); }
  Value dict;
  What what;
};

// A generator: gives each item once.
struct IteratorObject : Object {
  IteratorObject(Heap& heap, size_t bytes, const char* name) : Object(heap, bytes), type_name(name) {}
  virtual bool Next(Runtime& r, Value& item) = 0;
  const char* type_name;
};

struct NamespaceObject : Object {
  NamespaceObject(Heap& heap, Value d) : Object(heap, sizeof(NamespaceObject)), attributes(std::move(d)) {}
  void Clear() override { attributes = Value(); }
  Value attributes;  // a dict that nothing else holds
};

// jinja's undefined: prints as nothing, is false and empty, and fails with its message when it is used otherwise.
struct UndefinedObject : Object {
  UndefinedObject(Heap& heap, std::string h) : Object(heap, sizeof(UndefinedObject) + h.size()), hint(std::move(h)) {}
  void Clear() override { name = Value(); }
  std::string Message() const;
  std::string hint;               // the whole message, if not empty
  const char* owner = nullptr;    // type of the object that had no such member; nullptr: a variable
  Value name;                     // the attribute, key or variable
  bool unsafe = false;            // the sandbox refused: a SecurityError
};

// The arguments of a call. Keyword names are views into the template or into a value that `spread` keeps alive.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> keyword;
  Value spread;
};

struct CallableObject : Object {
  CallableObject(Heap& heap, size_t bytes) : Object(heap, bytes) {}
  virtual Value Call(Runtime& r, const Arguments& arguments) = 0;
  virtual bool Attribute(Runtime&, std::string_view, Value&) { return false; }
  virtual std::string Describe() const = 0;  // what str() gives
  virtual const char* type_name() const { return "function"; }
};

// range, dict, namespace, raise_exception, ...
struct BuiltinObject : CallableObject {
  using Function = Value (*)(Runtime&, const Arguments&);
  BuiltinObject(Heap& heap, const char* n, Function f) : CallableObject(heap, sizeof(BuiltinObject)), name(n), function(f) {}
  Value Call(Runtime& r, const Arguments& arguments) override { return function(r, arguments); }
  std::string Describe() const override { return std::string("<function ") + name + ">"; }
  const char* name;
  Function function;
};

// A method of a built-in type.
struct Method {
  const char* name;
  Value (*function)(Runtime& r, const Value& self, const Arguments& arguments);
};
struct MethodObject : CallableObject {
  MethodObject(Heap& heap, Value s, const Method* m)
      : CallableObject(heap, sizeof(MethodObject)), self(std::move(s)), method(m) {}
  void Clear() override { self = Value(); }
  Value Call(Runtime& r, const Arguments& arguments) override { return method->function(r, self, arguments); }
  std::string Describe() const override { return std::string("<built-in method ") + method->name + ">"; }
  const char* type_name() const override { return "builtin_function_or_method"; }
  Value self;
  const Method* method;
};

struct CyclerObject : Object {
  CyclerObject(Heap& heap, std::vector<Value> v)
      : Object(heap, sizeof(CyclerObject) + v.size() * sizeof(Value)), items(std::move(v)) {}
  void Clear() override { items.clear(); }
  std::vector<Value> items;
  size_t position = 0;
};

Value MakeList(Heap& heap, std::vector<Value> items);
Value MakeTuple(Heap& heap, std::vector<Value> items);
Value MakeDict(Heap& heap);  // empty; fill it through As<DictObject>() before anybody else sees it
Value MakeUndefined(Heap& heap, std::string hint);
Value MakeUndefinedVariable(Heap& heap, std::string_view name);
Value MakeUndefinedMember(Heap& heap, const Value& owner, Value name, bool unsafe);

}  // namespace halfbyte::text::jinja
