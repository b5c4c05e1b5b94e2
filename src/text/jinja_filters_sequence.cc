#include <algorithm>

#include "text/jinja_arguments.h"
#include "text/jinja_compare.h"
#include "text/jinja_filters.h"
#include "text/jinja_operations.h"
#include "text/jinja_sort.h"
#include "text/jinja_text.h"
#include "text/jinja_unicode.h"

namespace halfbyte::text::jinja {
namespace {

using Kind = Value::Kind;

// A generator whose items are computed together when the first is asked for; errors appear then, not before.
class DeferredIterator : public IteratorObject {
 public:
  using Compute = std::vector<Value> (*)(Runtime&, const Value&, const Bound&);
  DeferredIterator(Runtime& r, Value input, Bound arguments, Compute compute)
      : IteratorObject(r.heap(), sizeof(DeferredIterator), "generator"), input_(std::move(input)),
        arguments_(std::move(arguments)), compute_(compute) {}
  void Clear() override { input_ = items_ = Value(); arguments_.reset(); }
  bool Next(Runtime& r, Value& item) override {
    if (items_.is_missing()) {
      items_ = r.List(compute_(r, input_, *arguments_));
      input_ = Value();
    }
    const auto& items = items_.As<SequenceObject>().items;
    if (position_ >= items.size()) return false;
    item = items[position_++];
    return true;
  }

 private:
  Value input_, items_;
  std::optional<Bound> arguments_;
  Compute compute_;
  size_t position_ = 0;
};

Value Defer(Runtime& r, const Value& input, Bound arguments, DeferredIterator::Compute compute) {
  return Value::Of(Kind::kIterator, new DeferredIterator(r, input, std::move(arguments), compute));
}

std::vector<Value> BatchItems(Runtime& r, const Value& v, const Bound& a) {
  std::vector<Value> out, row;
  auto count = static_cast<size_t>(std::max<int64_t>(Clamp64(a.Integer(0, 0)), -1));
  Cursor cursor(r, v);
  for (Value item; cursor.Next(item);) {
    if (row.size() == count) out.push_back(r.List(std::exchange(row, {})));
    row.push_back(std::move(item));
  }
  if (row.empty()) return out;
  if (a.HasValue(1) && Clamp64(a.Integer(0, 0)) > static_cast<int64_t>(row.size())) {
    r.heap().CheckRoom(count * sizeof(Value));
    row.resize(count, a[1]);
  }
  out.push_back(r.List(std::move(row)));
  return out;
}

Value Batch(Runtime& r, const Value& v, const Arguments& arguments) {
  return Defer(r, v, Bound("batch", arguments, {"linecount", "fill_with"}, 1), BatchItems);
}

std::vector<Value> SliceItems(Runtime& r, const Value& v, const Bound& a) {
  std::vector<Value> items = Collect(r, v), out;
  int64_t slices = Clamp64(a.Integer(0, 0));
  if (slices == 0) Fail("ZeroDivisionError", "integer division or modulo by zero");
  if (slices < 0) return out;
  auto size = static_cast<int64_t>(items.size());
  int64_t each = size / slices, longer = size % slices, at = 0;
  for (int64_t i = 0; i < slices; ++i) {
    r.Step();
    int64_t count = each + (i < longer);
    std::vector<Value> part(items.begin() + at, items.begin() + at + count);
    at += count;
    if (a.HasValue(1) && i >= longer) part.push_back(a[1]);
    out.push_back(r.List(std::move(part)));
  }
  return out;
}

Value SliceFilter(Runtime& r, const Value& v, const Arguments& arguments) {
  return Defer(r, v, Bound("slice", arguments, {"slices", "fill_with"}, 1), SliceItems);
}

std::vector<Value> ItemPairs(Runtime& r, const Value& v, const Bound&) {
  std::vector<Value> out;
  if (v.is_undefined()) return out;
  if (!v.is(Kind::kDict)) Fail("TypeError", "Can only get item pairs from a mapping.");
  for (const auto& [key, value] : v.As<DictObject>().entries()) {
    r.Step();
    out.push_back(r.Tuple({key, value}));
  }
  return out;
}

Value Items(Runtime& r, const Value& v, const Arguments& arguments) {
  return Defer(r, v, Bound("items", arguments, {}), ItemPairs);
}

Value Length(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound::Positional("len", arguments, 0, 0);
  if (v.is_string()) r.StepBytes(v.text().size());
  std::optional<int64_t> size = Size(v);
  if (!size) Fail("TypeError", "object of type '", TypeName(v), "' has no len()");
  return Value::Integer(*size);
}

Value Default(Runtime&, const Value& v, const Arguments& arguments) {
  Bound a("default", arguments, {"default_value", "boolean"});
  bool replace = v.is_undefined() || (a.Truth(1, false) && !Truthy(v));
  if (!replace) return v;
  return a.Has(0) ? a[0] : Value::Borrowed("");
}

Value First(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound("first", arguments, {});
  Cursor cursor(r, v);
  Value item;
  return cursor.Next(item) ? item : MakeUndefined(r.heap(), "No first item, sequence was empty.");
}

// reversed(v) as a list; none where Python has no reversed() for it.
std::optional<std::vector<Value>> Reversed(Runtime& r, const Value& v) {
  if (!IsIterable(v) || v.is(Kind::kIterator)) return std::nullopt;
  std::vector<Value> items = Collect(r, v);
  std::reverse(items.begin(), items.end());
  return items;
}

Value Last(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound("last", arguments, {});
  if (v.is_sequence()) {
    const auto& items = v.As<SequenceObject>().items;
    if (!items.empty()) return items.back();
  }
  auto items = Reversed(r, v);
  if (!items) Fail("TypeError", "'", TypeName(v), "' object is not reversible");
  return items->empty() ? MakeUndefined(r.heap(), "No last item, sequence was empty.") : (*items)[0];
}

Value Reverse(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound("reverse", arguments, {});
  if (v.is_string()) return GetSlice(r, v, Value(), Value(), Value::Integer(-1));
  if (auto items = Reversed(r, v)) return MakeIterator(r, r.List(std::move(*items)), "reversed");
  if (!IsIterable(v)) Fail("FilterArgumentError", "argument must be iterable");
  std::vector<Value> items = Collect(r, v);
  std::reverse(items.begin(), items.end());
  return r.List(std::move(items));
}

Value List(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound("list", arguments, {});
  return r.List(Collect(r, v));
}

Value Join(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound a("join", arguments, {"d", "attribute"});
  Value separator = a.Has(0) ? ToStr(r, a[0]) : Value::Borrowed("");
  AttributePath path(r, a[1], false);
  std::string out;
  bool first = true;
  Cursor cursor(r, v);
  for (Value item; cursor.Next(item);) {
    if (!first) out += separator.text();
    first = false;
    AppendStr(r, out, path.Get(r, item, Value(), false));
    r.CheckGrowth(out);
  }
  return r.String(std::move(out));
}

Value Sort(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound a("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  AttributePath path(r, a[2], true);
  bool fold = !a.Truth(1, false);
  std::vector<KeyedValue> keyed;
  for (Value& item : Collect(r, v)) {
    Value key = path.Get(r, item, Value(), fold);
    keyed.push_back({std::move(key), std::move(item)});
  }
  SortByKey(r, keyed, a.Integer(0, 0) != 0);
  std::vector<Value> out;
  for (KeyedValue& k : keyed) out.push_back(std::move(k.value));
  return r.List(std::move(out));
}

Value DictSort(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound a("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  std::string_view by = a.Text(1, "key");
  if (by != "key" && by != "value") Fail("FilterArgumentError", "You can only sort by either \"key\" or \"value\"");
  FailIfUndefined(v);
  if (!v.is(Kind::kDict)) Fail("AttributeError", "'", TypeName(v), "' object has no attribute 'items'");
  bool fold = !a.Truth(0, false);
  std::vector<KeyedValue> keyed;
  for (const auto& [key, value] : v.As<DictObject>().entries()) {
    Value by_value = by == "key" ? key : value;
    if (fold && by_value.is_string()) by_value = r.String(ToLower(by_value.text()));
    keyed.push_back({std::move(by_value), r.Tuple({key, value})});
  }
  SortByKey(r, keyed, a.Integer(2, 0) != 0);
  std::vector<Value> out;
  for (KeyedValue& k : keyed) out.push_back(std::move(k.value));
  return r.List(std::move(out));
}

Value MakeGroup(Runtime& r, Value grouper, std::vector<Value> items) {
  Value group = r.Tuple({std::move(grouper), r.List(std::move(items))});
  group.As<SequenceObject>().is_group = true;
  return group;
}

Value GroupBy(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound a("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  AttributePath path(r, a[0], false);
  bool fold = !a.Truth(2, false);
  std::vector<KeyedValue> keyed;
  for (Value& item : Collect(r, v)) {
    Value key = path.Get(r, item, a[1], fold);
    keyed.push_back({std::move(key), std::move(item)});
  }
  SortByKey(r, keyed, false);
  std::vector<Value> out;
  for (size_t i = 0; i < keyed.size();) {
    size_t first = i;
    std::vector<Value> items;
    for (; i < keyed.size() && Equal(r, keyed[i].key, keyed[first].key); ++i) items.push_back(keyed[i].value);
    // The group is named as its first item spells it.
    Value grouper = fold ? path.Get(r, items[0], a[1], false) : keyed[first].key;
    out.push_back(MakeGroup(r, std::move(grouper), std::move(items)));
  }
  return r.List(std::move(out));
}

Value Attr(Runtime& r, const Value& v, const Arguments& arguments) {
  Bound a("attr", arguments, {"name"}, 1);
  FailIfUndefined(v);
  if (!a[0].is_string()) Fail("TypeError", "attribute name must be string, not '", TypeName(a[0]), "'");
  Value out;
  if (FindAttribute(r, v, a[0], out)) return out;
  return MakeUndefinedMember(r.heap(), v, a[0], false);
}

constexpr FilterEntry kFilters[] = {
    {"attr", Attr}, {"batch", Batch}, {"count", Length}, {"d", Default}, {"default", Default}, {"dictsort", DictSort},
    {"first", First}, {"groupby", GroupBy}, {"items", Items}, {"join", Join}, {"last", Last}, {"length", Length},
    {"list", List}, {"reverse", Reverse}, {"slice", SliceFilter}, {"sort", Sort},
};

}  // namespace

FilterTable SequenceFilters() { return {kFilters, std::size(kFilters)}; }

}  // namespace halfbyte::text::jinja
