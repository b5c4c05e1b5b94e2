#include "text/jinja_compare.h"

#include <algorithm>
#include <cmath>

#include "text/jinja_iterate.h"
#include "text/jinja_loop.h"
#include "text/jinja_text.h"
#include "text/jinja_unicode.h"

namespace halfbyte::text::jinja {
namespace {

using Kind = Value::Kind;

constexpr int kMaxKeyDepth = 50;  // tuples in tuples as a dict key
constexpr double kTwoTo127 = 170141183460469231731687303715884105728.0;

int CompareIntToFloat(Int i, double d) {
  if (std::isnan(d)) return 2;
  if (d >= kTwoTo127) return -1;
  if (d < -kTwoTo127) return 1;
  double whole = std::floor(d);
  Int w = static_cast<Int>(whole);
  if (i != w) return i < w ? -1 : 1;
  return d > whole ? -1 : 0;
}

template <typename T>
int Compare3(const T& a, const T& b) { return a < b ? -1 : a > b ? 1 : 0; }

int Compare3(std::string_view a, std::string_view b) { return Compare3(a.compare(b), 0); }

// The rank of a key's class; within one, CompareKeys looks at the value.
int KeyClass(const Value& v) {
  switch (v.kind()) {
    case Kind::kUndefined: return 0;
    case Kind::kNone: return 1;
    case Kind::kBool: case Kind::kInt: case Kind::kFloat: return 2;
    case Kind::kString: return 3;
    case Kind::kTuple: return 4;
    default: return 5;
  }
}

void CheckHashableAt(const Value& key, int depth) {
  if (key.is(Kind::kList) || key.is(Kind::kDict)) Fail("TypeError", "unhashable type: '", TypeName(key), "'");
  if (!key.is(Kind::kTuple)) return;
  if (depth > kMaxKeyDepth) FailLimit("a dict key is nested too deeply");
  key.object()->heap().Step();
  for (const Value& item : key.As<SequenceObject>().items) CheckHashableAt(item, depth + 1);
}

bool EqualSequences(Runtime& r, const SequenceObject& a, const SequenceObject& b) {
  if (a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!Equal(r, a.items[i], b.items[i])) return false;
  }
  return true;
}

bool EqualDicts(Runtime& r, const DictObject& a, const DictObject& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [key, value] : a.entries()) {
    const Value* other = b.Find(key);
    if (other == nullptr || !Equal(r, value, *other)) return false;
  }
  return true;
}

bool Holds(Order order, int comparison) {
  switch (order) {
    case Order::kLess: return comparison < 0;
    case Order::kLessEqual: return comparison <= 0;
    case Order::kGreater: return comparison == 1;
    case Order::kGreaterEqual: return comparison == 0 || comparison == 1;
  }
  return false;
}

bool OrderedSequences(Runtime& r, Order order, const SequenceObject& a, const SequenceObject& b) {
  size_t n = std::min(a.items.size(), b.items.size());
  for (size_t i = 0; i < n; ++i) {
    if (!Equal(r, a.items[i], b.items[i])) return Ordered(r, order, a.items[i], b.items[i]);
  }
  return Holds(order, Compare3(a.items.size(), b.items.size()));
}

bool RangeContains(const RangeObject& range, Int i) {
  if (range.size == 0) return false;
  Int offset = i - range.start;
  return offset % range.step == 0 && offset / range.step >= 0 && offset / range.step < range.size;
}

}  // namespace

bool Truthy(const Value& v) {
  switch (v.kind()) {
    case Kind::kMissing: case Kind::kUndefined: case Kind::kNone: return false;
    case Kind::kBool: case Kind::kInt: return v.integer() != 0;
    case Kind::kFloat: return v.real() != 0;
    case Kind::kString: return !v.text().empty();
    default: {
      std::optional<int64_t> size = Size(v);
      return !size || *size != 0;
    }
  }
}

std::optional<int64_t> Size(const Value& v) {
  switch (v.kind()) {
    case Kind::kUndefined: return 0;
    case Kind::kString: return static_cast<int64_t>(CountCodePoints(v.text()));
    case Kind::kTuple: case Kind::kList: return static_cast<int64_t>(v.As<SequenceObject>().items.size());
    case Kind::kDict: return static_cast<int64_t>(v.As<DictObject>().size());
    case Kind::kRange: return v.As<RangeObject>().size;
    case Kind::kView: return Size(v.As<ViewObject>().dict);
    case Kind::kLoop: return v.As<LoopObject>().Length();
    default: return std::nullopt;
  }
}

int CompareNumbers(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return Compare3(a.integer(), b.integer());
  if (a.is_integral()) return CompareIntToFloat(a.integer(), b.real());
  if (b.is_integral()) {
    int c = CompareIntToFloat(b.integer(), a.real());
    return c == 2 ? 2 : -c;
  }
  if (std::isnan(a.real()) || std::isnan(b.real())) return 2;
  return Compare3(a.real(), b.real());
}

void CheckHashable(const Value& key) { CheckHashableAt(key, 0); }

int CompareKeys(const Value& a, const Value& b) {
  int ca = KeyClass(a), cb = KeyClass(b);
  if (ca != cb) return Compare3(ca, cb);
  switch (ca) {
    case 2: {
      int c = CompareNumbers(a, b);
      if (c != 2) return c;
      return Compare3(a.is(Kind::kFloat) && std::isnan(a.real()), b.is(Kind::kFloat) && std::isnan(b.real()));
    }
    case 3: return Compare3(a.text(), b.text());
    case 4: {
      if (a.object() == b.object()) return 0;
      a.object()->heap().Step();
      const auto& x = a.As<SequenceObject>().items;
      const auto& y = b.As<SequenceObject>().items;
      for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
        if (int c = CompareKeys(x[i], y[i]); c != 0) return c;
      }
      return Compare3(x.size(), y.size());
    }
    case 5: return Compare3(reinterpret_cast<uintptr_t>(a.object()), reinterpret_cast<uintptr_t>(b.object()));
    default: return 0;
  }
}

bool Equal(Runtime& r, const Value& a, const Value& b) {
  r.Step();
  if (a.is_number() && b.is_number()) return CompareNumbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kMissing: case Kind::kUndefined: case Kind::kNone: return true;
    case Kind::kString: return a.text() == b.text();
    case Kind::kTuple: case Kind::kList: {
      if (a.object() == b.object()) return true;
      DepthGuard guard(r);
      return EqualSequences(r, a.As<SequenceObject>(), b.As<SequenceObject>());
    }
    case Kind::kDict: {
      if (a.object() == b.object()) return true;
      DepthGuard guard(r);
      return EqualDicts(r, a.As<DictObject>(), b.As<DictObject>());
    }
    case Kind::kRange: {
      const auto& x = a.As<RangeObject>();
      const auto& y = b.As<RangeObject>();
      return x.size == y.size && (x.size == 0 || (x.start == y.start && (x.size == 1 || x.step == y.step)));
    }
    default: return a.object() == b.object();
  }
}

bool Ordered(Runtime& r, Order order, const Value& a, const Value& b) {
  r.Step();
  if (a.is_number() && b.is_number()) {
    int c = CompareNumbers(a, b);
    return c != 2 && Holds(order, c);
  }
  if (a.is_string() && b.is_string()) return Holds(order, Compare3(a.text(), b.text()));  // UTF-8 sorts as code points do
  if (a.is_sequence() && a.kind() == b.kind()) {
    DepthGuard guard(r);
    return OrderedSequences(r, order, a.As<SequenceObject>(), b.As<SequenceObject>());
  }
  FailIfUndefined(a);
  FailIfUndefined(b);
  static constexpr const char* kNames[] = {"<", "<=", ">", ">="};
  Fail("TypeError", "'", kNames[static_cast<int>(order)], "' not supported between instances of '", TypeName(a), "' and '",
       TypeName(b), "'");
}

bool Contains(Runtime& r, const Value& container, const Value& item) {
  switch (container.kind()) {
    case Kind::kString:
      if (!item.is_string()) Fail("TypeError", "'in <string>' requires string as left operand, not ", TypeName(item));
      r.StepBytes(container.text().size());
      return container.text().find(item.text()) != std::string_view::npos;
    case Kind::kDict: return container.As<DictObject>().Find(item) != nullptr;
    case Kind::kView:
      if (container.As<ViewObject>().what == ViewObject::What::kKeys) return Contains(r, container.As<ViewObject>().dict, item);
      break;
    case Kind::kRange:
      if (item.is_integral()) return RangeContains(container.As<RangeObject>(), item.integer());
      break;
    default: break;
  }
  if (!IsIterable(container)) Fail("TypeError", "argument of type '", TypeName(container), "' is not iterable");
  Cursor cursor(r, container);
  for (Value v; cursor.Next(v);) {
    if (SameObject(v, item) || Equal(r, v, item)) return true;
  }
  return false;
}

bool SameObject(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kMissing: case Kind::kNone: return true;
    case Kind::kBool: return a.boolean() == b.boolean();
    // CPython keeps one object for each of these ints; other numbers are the same object only by luck.
    case Kind::kInt: return a.integer() == b.integer() && a.integer() >= -5 && a.integer() <= 256;
    case Kind::kFloat: return false;
    case Kind::kString: return a.text() == b.text() && (a.text().data() == b.text().data() || a.text().size() <= 1);
    default: return a.object() == b.object();
  }
}

}  // namespace halfbyte::text::jinja
