#include <algorithm>

#include "text/jinja_compare.h"
#include "text/jinja_loop.h"
#include "text/jinja_methods.h"
#include "text/jinja_operations.h"
#include "text/jinja_self.h"
#include "text/jinja_text.h"
#include "text/jinja_unicode.h"

namespace halfbyte::text::jinja {
namespace {

using Kind = Value::Kind;

Value Bind(Runtime& r, const Value& self, const Method* method) {
  return Value::Of(Kind::kCallable, new MethodObject(r.heap(), self, method));
}

bool FindNumberAttribute(const Value& v, std::string_view name, Value& out) {
  if (name == "real") out = v.is_integral() ? Value::Integer(v.integer()) : v;
  else if (name == "imag") out = v.is_integral() ? Value::Integer(0) : Value::Float(0);
  else if (name == "numerator" && v.is_integral()) out = Value::Integer(v.integer());
  else if (name == "denominator" && v.is_integral()) out = Value::Integer(1);
  else return false;
  return true;
}

bool FindRangeAttribute(const RangeObject& range, std::string_view name, Value& out) {
  if (name == "start") out = Value::Integer(range.start);
  else if (name == "stop") out = Value::Integer(range.stop);
  else if (name == "step") out = Value::Integer(range.step);
  else return false;
  return true;
}

// Attributes that are no methods.
bool FindData(Runtime& r, const Value& v, std::string_view name, Value& out) {
  switch (v.kind()) {
    case Kind::kBool: case Kind::kInt: case Kind::kFloat: return FindNumberAttribute(v, name, out);
    case Kind::kRange: return FindRangeAttribute(v.As<RangeObject>(), name, out);
    case Kind::kTuple: {
      const auto& tuple = v.As<SequenceObject>();
      if (!tuple.is_group || (name != "grouper" && name != "list")) return false;
      out = tuple.items[name == "list"];
      return true;
    }
    case Kind::kCycler: {
      const auto& cycler = v.As<CyclerObject>();
      if (name == "items") { out = r.Tuple(cycler.items); return true; }
      if (name == "pos") { out = Value::Integer(cycler.position); return true; }
      if (name == "current") { out = cycler.items[cycler.position]; return true; }
      return false;
    }
    case Kind::kLoop: return v.As<LoopObject>().Attribute(v, name, out);
    case Kind::kCallable: return v.As<CallableObject>().Attribute(r, name, out);
    default: return false;
  }
}

// The offset of an index into a sequence of `size`, -1 where it is out of range.
int64_t Place(Int index, int64_t size) {
  if (index < 0) index += size;
  return index >= 0 && index < size ? static_cast<int64_t>(index) : -1;
}

bool FindCharacter(const Value& v, Int index, Value& out) {
  std::string_view s = v.text();
  int64_t at = Place(index, static_cast<int64_t>(CountCodePoints(s)));
  if (at < 0) return false;
  size_t start = ByteOffset(s, static_cast<size_t>(at)), n = 0;
  DecodeAt(s, start, n);
  out = v.Part(s.substr(start, n));
  return true;
}

// obj[key] without the attributes.
bool FindItem(Runtime& r, const Value& v, const Value& key, Value& out) {
  switch (v.kind()) {
    case Kind::kDict: {
      if (key.is(Kind::kList) || key.is(Kind::kDict)) return false;  // unhashable: jinja takes the TypeError for "not there"
      const Value* found = v.As<DictObject>().Find(key);
      if (found != nullptr) out = *found;
      return found != nullptr;
    }
    case Kind::kTuple: case Kind::kList: {
      if (!key.is_integral()) return false;
      const auto& items = v.As<SequenceObject>().items;
      int64_t at = Place(key.integer(), static_cast<int64_t>(items.size()));
      if (at >= 0) out = items[static_cast<size_t>(at)];
      return at >= 0;
    }
    case Kind::kString:
      r.StepBytes(v.text().size());
      return key.is_integral() && FindCharacter(v, key.integer(), out);
    case Kind::kRange: {
      if (!key.is_integral()) return false;
      const auto& range = v.As<RangeObject>();
      int64_t at = Place(key.integer(), range.size);
      if (at >= 0) out = Value::Integer(static_cast<Int>(range.start) + static_cast<Int>(at) * range.step);
      return at >= 0;
    }
    case Kind::kSelf: return key.is_string() && v.As<SelfObject>().FindBlock(r, key.text(), out);
    default: return false;
  }
}

struct SliceBounds {
  Int start, stop, step;
  size_t count;
};

Int SliceIndex(const Value& v, Int otherwise) {
  if (v.is_missing() || v.is_none()) return otherwise;
  if (!v.is_integral()) {
    FailIfUndefined(v);
    Fail("TypeError", "slice indices must be integers or None or have an __index__ method");
  }
  return v.integer();
}

SliceBounds BoundsOf(const Value& start, const Value& stop, const Value& step, int64_t size) {
  SliceBounds b{};
  b.step = SliceIndex(step, 1);
  if (b.step == 0) Fail("ValueError", "slice step cannot be zero");
  Int low = b.step < 0 ? -1 : 0, high = b.step < 0 ? size - 1 : size;
  auto clamp = [&](Int i) {
    if (i < 0) i += size;
    return std::clamp(i, low, high);
  };
  bool from_start = start.is_missing() || start.is_none(), to_end = stop.is_missing() || stop.is_none();
  b.start = from_start ? (b.step < 0 ? high : low) : clamp(SliceIndex(start, 0));
  b.stop = to_end ? (b.step < 0 ? low : high) : clamp(SliceIndex(stop, 0));
  Int span = b.step > 0 ? b.stop - b.start : b.start - b.stop;
  Int width = b.step > 0 ? b.step : -b.step;
  b.count = span > 0 ? static_cast<size_t>((span - 1) / width + 1) : 0;
  return b;
}

Value SliceString(Runtime& r, const Value& v, const Value& start, const Value& stop, const Value& step) {
  std::string_view s = v.text();
  r.StepBytes(s.size());
  size_t size = CountCodePoints(s);
  SliceBounds b = BoundsOf(start, stop, step, static_cast<int64_t>(size));
  if (b.step == 1) {
    size_t from = ByteOffset(s, static_cast<size_t>(b.start));
    return v.Part(s.substr(from, ByteOffset(s.substr(from), b.count)));
  }
  std::vector<uint32_t> offsets;
  offsets.reserve(size);
  for (size_t i = 0, n = 0; i < s.size(); i += n) {
    offsets.push_back(static_cast<uint32_t>(i));
    DecodeAt(s, i, n);
  }
  std::string out;
  Int at = b.start;
  for (size_t i = 0; i < b.count; ++i, at += b.step) {
    size_t n = 0;
    DecodeAt(s, offsets[static_cast<size_t>(at)], n);
    out.append(s, offsets[static_cast<size_t>(at)], n);
  }
  return r.String(std::move(out)).WithMarkup(v.is_markup());
}

}  // namespace

bool IsDictAttribute(std::string_view name) {
  return FindContainerMethod(Kind::kDict, name) != nullptr || IsMutator(Kind::kDict, name) || IsInternalAttribute(name);
}

bool FindAttribute(Runtime& r, const Value& v, const Value& name, Value& out) {
  std::string_view text = name.text();
  if (v.is(Kind::kNamespace)) {
    const Value* found = v.As<NamespaceObject>().attributes.As<DictObject>().Find(name);
    if (found != nullptr) out = text.starts_with("_") ? MakeUndefinedMember(r.heap(), v, name, true) : *found;
    return found != nullptr;
  }
  if (IsInternalAttribute(text) || IsMutator(v.kind(), text)) {
    out = MakeUndefinedMember(r.heap(), v, name, true);
    return true;
  }
  const Method* method = v.is_string() ? FindStringMethod(text) : FindContainerMethod(v.kind(), text);
  if (method != nullptr) { out = Bind(r, v, method); return true; }
  return FindData(r, v, text, out);
}

Value GetAttribute(Runtime& r, const Value& v, const Value& name) {
  r.Step();
  if (!IsObjectAttribute(name.text())) FailIfUndefined(v);
  Value out;
  if (FindAttribute(r, v, name, out) || FindItem(r, v, name, out)) return out;
  return MakeUndefinedMember(r.heap(), v, name, false);
}

Value GetItem(Runtime& r, const Value& v, const Value& key) {
  r.Step();
  FailIfUndefined(v);
  Value out;
  if (FindItem(r, v, key, out)) return out;
  if (key.is_string() && FindAttribute(r, v, key, out)) return out;
  return MakeUndefinedMember(r.heap(), v, key, false);
}

Value GetSlice(Runtime& r, const Value& v, const Value& start, const Value& stop, const Value& step) {
  r.Step();
  FailIfUndefined(v);
  if (v.is_string()) return SliceString(r, v, start, stop, step);
  if (v.is_sequence()) {
    const auto& items = v.As<SequenceObject>().items;
    SliceBounds b = BoundsOf(start, stop, step, static_cast<int64_t>(items.size()));
    r.Step(static_cast<int64_t>(b.count));
    std::vector<Value> part;
    part.reserve(b.count);
    Int at = b.start;
    for (size_t i = 0; i < b.count; ++i, at += b.step) part.push_back(items[static_cast<size_t>(at)]);
    return v.is(Kind::kList) ? r.List(std::move(part)) : r.Tuple(std::move(part));
  }
  if (v.is(Kind::kRange)) {
    const auto& range = v.As<RangeObject>();
    SliceBounds b = BoundsOf(start, stop, step, range.size);
    auto at = [&](Int i) { return static_cast<int64_t>(range.start + i * range.step); };
    auto by = static_cast<int64_t>(std::clamp<Int>(b.step * range.step, INT64_MIN, INT64_MAX));
    return Value::Of(Kind::kRange, new RangeObject(r.heap(), at(b.start), at(b.stop), by));
  }
  if (v.is(Kind::kDict)) Fail("TypeError", "unhashable type: 'slice'");
  Fail("TypeError", "'", TypeName(v), "' object is not subscriptable");
}

bool IsCallable(const Value& v) { return v.is(Kind::kCallable) || v.is(Kind::kLoop) || v.is_undefined(); }

Value CallValue(Runtime& r, const Value& callee, const Arguments& arguments) {
  r.Step();
  FailIfUndefined(callee);
  DepthGuard guard(r);
  if (callee.is(Kind::kCallable)) return callee.As<CallableObject>().Call(r, arguments);
  if (callee.is(Kind::kLoop)) return callee.As<LoopObject>().Call(arguments);
  Fail("TypeError", "'", TypeName(callee), "' object is not callable");
}

}  // namespace halfbyte::text::jinja
