#include <algorithm>
#include <cmath>

#include "text/jinja_arguments.h"
#include "text/jinja_compare.h"
#include "text/jinja_iterate.h"
#include "text/jinja_methods.h"
#include "text/jinja_text.h"

namespace halfbyte::text::jinja {
namespace {

using Kind = Value::Kind;

Value DictGet(Runtime&, const Value& self, const Arguments& arguments) {
  Bound a = Bound::Positional("get", arguments, 1, 2);
  const Value* found = self.As<DictObject>().Find(a[0]);
  if (found != nullptr) return *found;
  return a.Has(1) ? a[1] : Value::None();
}

Value View(Runtime& r, const Value& self, const Arguments& arguments, const char* name, ViewObject::What what) {
  Bound::Positional(name, arguments, 0, 0);
  return Value::Of(Kind::kView, new ViewObject(r.heap(), self, what));
}

Value DictFromKeys(Runtime& r, const Value&, const Arguments& arguments) {
  Bound a = Bound::Positional("fromkeys", arguments, 1, 2);
  Value out = MakeDict(r.heap());
  Cursor cursor(r, a[0]);
  for (Value key; cursor.Next(key);) out.As<DictObject>().Set(key, a.Has(1) ? a[1] : Value::None());
  return out;
}

// list.copy and dict.copy: containers do not change, so the copy may be the thing itself.
Value Copy(Runtime&, const Value& self, const Arguments& arguments) {
  Bound::Positional("copy", arguments, 0, 0);
  return self;
}

Value SequenceIndex(Runtime& r, const Value& self, const Arguments& arguments) {
  Bound a = Bound::Positional("index", arguments, 1, 3);
  const auto& items = self.As<SequenceObject>().items;
  auto size = static_cast<Int>(items.size());
  auto bound = [&](size_t at, Int otherwise) {
    Int i = a.Integer(at, otherwise);
    return std::clamp<Int>(i < 0 ? i + size : i, 0, size);
  };
  for (Int i = bound(1, 0), end = bound(2, size); i < end; ++i) {
    const Value& item = items[static_cast<size_t>(i)];
    if (SameObject(item, a[0]) || Equal(r, item, a[0])) return Value::Integer(i);
  }
  Fail("ValueError", Repr(r, a[0]), " is not in ", TypeName(self));
}

Value SequenceCount(Runtime& r, const Value& self, const Arguments& arguments) {
  Bound a = Bound::Positional("count", arguments, 1, 1);
  Int count = 0;
  for (const Value& item : self.As<SequenceObject>().items) count += SameObject(item, a[0]) || Equal(r, item, a[0]);
  return Value::Integer(count);
}

Value RangeIndex(Runtime& r, const Value& self, const Arguments& arguments) {
  Bound a = Bound::Positional("index", arguments, 1, 1);
  if (!Contains(r, self, a[0]) || !a[0].is_integral()) Fail("ValueError", Repr(r, a[0]), " is not in range");
  const auto& range = self.As<RangeObject>();
  return Value::Integer((a[0].integer() - range.start) / range.step);
}

Value RangeCount(Runtime& r, const Value& self, const Arguments& arguments) {
  Bound a = Bound::Positional("count", arguments, 1, 1);
  return Value::Integer(Contains(r, self, a[0]));
}

Value BitLength(Runtime&, const Value& self, const Arguments& arguments) {
  Bound::Positional("bit_length", arguments, 0, 0);
  Int i = self.integer(), bits = 0;
  for (Int rest = i < 0 ? -i : i; rest > 0; rest >>= 1) ++bits;
  return Value::Integer(bits);
}

Value IsInteger(Runtime&, const Value& self, const Arguments& arguments) {
  Bound::Positional("is_integer", arguments, 0, 0);
  return Value::Bool(std::isfinite(self.real()) && std::floor(self.real()) == self.real());
}

Value CyclerNext(Runtime&, const Value& self, const Arguments& arguments) {
  Bound::Positional("next", arguments, 0, 0);
  auto& cycler = self.As<CyclerObject>();
  Value item = cycler.items[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items.size();
  return item;
}

Value CyclerReset(Runtime&, const Value& self, const Arguments& arguments) {
  Bound::Positional("reset", arguments, 0, 0);
  self.As<CyclerObject>().position = 0;
  return Value::None();
}

using What = ViewObject::What;
constexpr Method kDictMethods[] = {
    {"get", DictGet},
    {"items", [](Runtime& r, const Value& s, const Arguments& a) { return View(r, s, a, "items", What::kItems); }},
    {"keys", [](Runtime& r, const Value& s, const Arguments& a) { return View(r, s, a, "keys", What::kKeys); }},
    {"values", [](Runtime& r, const Value& s, const Arguments& a) { return View(r, s, a, "values", What::kValues); }},
    {"copy", Copy},
    {"fromkeys", DictFromKeys},
};
constexpr Method kListMethods[] = {{"index", SequenceIndex}, {"count", SequenceCount}, {"copy", Copy}};
constexpr Method kTupleMethods[] = {{"index", SequenceIndex}, {"count", SequenceCount}};
constexpr Method kRangeMethods[] = {{"index", RangeIndex}, {"count", RangeCount}};
constexpr Method kIntMethods[] = {{"bit_length", BitLength}};
constexpr Method kFloatMethods[] = {{"is_integer", IsInteger}};
constexpr Method kCyclerMethods[] = {{"next", CyclerNext}, {"reset", CyclerReset}};

template <size_t N>
const Method* FindIn(const Method (&methods)[N], std::string_view name) {
  for (const Method& m : methods) {
    if (name == m.name) return &m;
  }
  return nullptr;
}

template <size_t N>
bool IsOneOf(const char* const (&names)[N], std::string_view name) {
  return std::any_of(std::begin(names), std::end(names), [&](const char* n) { return name == n; });
}

}  // namespace

const Method* FindContainerMethod(Value::Kind kind, std::string_view name) {
  switch (kind) {
    case Kind::kDict: return FindIn(kDictMethods, name);
    case Kind::kList: return FindIn(kListMethods, name);
    case Kind::kTuple: return FindIn(kTupleMethods, name);
    case Kind::kRange: return FindIn(kRangeMethods, name);
    case Kind::kBool: case Kind::kInt: return FindIn(kIntMethods, name);
    case Kind::kFloat: return FindIn(kFloatMethods, name);
    case Kind::kCycler: return FindIn(kCyclerMethods, name);
    default: return nullptr;
  }
}

bool IsMutator(Value::Kind kind, std::string_view name) {
  static constexpr const char* kDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
  static constexpr const char* kList[] = {"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"};
  return (kind == Kind::kDict && IsOneOf(kDict, name)) || (kind == Kind::kList && IsOneOf(kList, name));
}

bool IsObjectAttribute(std::string_view name) {
  if (!name.starts_with("__")) return false;
  static constexpr const char* kNames[] = {
      "__class__", "__doc__", "__dict__", "__module__", "__init__", "__new__", "__init_subclass__", "__subclasshook__",
      "__repr__", "__str__", "__format__", "__hash__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__dir__",
      "__getattribute__", "__setattr__", "__delattr__", "__reduce__", "__reduce_ex__", "__getstate__", "__sizeof__"};
  return IsOneOf(kNames, name);
}

bool IsInternalAttribute(std::string_view name) {
  if (!name.starts_with("__")) return false;
  static constexpr const char* kNames[] = {
      "__len__", "__getitem__", "__setitem__", "__delitem__", "__iter__", "__next__", "__contains__", "__add__", "__mul__",
      "__rmul__", "__mod__", "__call__", "__bool__", "__int__", "__float__", "__name__", "__qualname__", "__globals__",
      "__code__",
      "__closure__", "__defaults__", "__kwdefaults__", "__wrapped__", "__self__", "__func__", "__reversed__", "__or__", "__ior__",
      "__class_getitem__", "__iadd__", "__imul__", "__mro__", "__bases__", "__base__", "__subclasses__"};
  return IsObjectAttribute(name) || IsOneOf(kNames, name);
}

}  // namespace halfbyte::text::jinja
