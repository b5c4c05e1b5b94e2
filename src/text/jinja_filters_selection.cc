// The filters that go through a sequence item by item, each giving a generator: map, select and its kin, unique.
#include "text/jinja_arguments.h"
#include "text/jinja_compare.h"
#include "text/jinja_filters.h"
#include "text/jinja_sort.h"
#include "text/jinja_tests.h"
#include "text/jinja_text.h"

namespace halfbyte::text::jinja {
namespace {

using Kind = Value::Kind;

// What the generators share: nothing is looked at before the first item is asked for, and an input that is false (empty,
// undefined, None) gives none.
class LazyIterator : public IteratorObject {
 public:
  LazyIterator(Runtime& r, size_t bytes, const Value& input, Arguments arguments)
      : IteratorObject(r.heap(), bytes, "generator"), arguments_(std::move(arguments)), input_(input) {}
  void Clear() override {
    arguments_ = Arguments();
    input_ = Value();
    cursor_.reset();
    path_.reset();
  }
  bool Next(Runtime& r, Value& item) override {
    if (!started_) {
      started_ = true;
      if (Truthy(input_)) {
        Prepare(r);
        cursor_.emplace(r, input_);
      }
    }
    return cursor_ && Advance(r, item);
  }

 protected:
  virtual void Prepare(Runtime& r) = 0;
  virtual bool Advance(Runtime& r, Value& item) = 0;
  Cursor& cursor() { return *cursor_; }

  Arguments arguments_;
  std::optional<AttributePath> path_;

 private:
  Value input_;
  std::optional<Cursor> cursor_;
  bool started_ = false;
};

class MapIterator : public LazyIterator {
 public:
  MapIterator(Runtime& r, const Value& input, Arguments a) : LazyIterator(r, sizeof(MapIterator), input, std::move(a)) {}
  void Clear() override { LazyIterator::Clear(); default_ = Value(); }

 private:
  void Prepare(Runtime& r) override {
    bool by_attribute = false;
    for (const auto& argument : arguments_.keyword) by_attribute |= argument.first == "attribute";
    if (arguments_.positional.empty() && by_attribute) {
      for (const auto& [name, value] : arguments_.keyword) {
        if (name == "attribute") path_.emplace(r, value, false);
        else if (name == "default") default_ = value;
        else Fail("FilterArgumentError", "Unexpected keyword argument '", name, "'");
      }
      return;
    }
    if (arguments_.positional.empty()) Fail("FilterArgumentError", "map requires a filter argument");
    Value name = arguments_.positional[0];
    filter_ = name.is_string() ? FindFilter(name.text()) : nullptr;
    if (filter_ == nullptr) Fail("TemplateRuntimeError", "No filter named ", Repr(r, name), ".");
    arguments_.positional.erase(arguments_.positional.begin());
  }
  bool Advance(Runtime& r, Value& item) override {
    Value next;
    if (!cursor().Next(next)) return false;
    item = filter_ != nullptr ? filter_(r, next, arguments_) : path_->Get(r, next, default_, false);
    return true;
  }

  FilterFunction filter_ = nullptr;
  Value default_;
};

class SelectIterator : public LazyIterator {
 public:
  SelectIterator(Runtime& r, const Value& input, Arguments a, bool wanted, bool by_attribute)
      : LazyIterator(r, sizeof(SelectIterator), input, std::move(a)), wanted_(wanted), by_attribute_(by_attribute) {}

 private:
  void Prepare(Runtime& r) override {
    auto& positional = arguments_.positional;
    if (by_attribute_) {
      if (positional.empty()) Fail("FilterArgumentError", "Missing parameter for attribute name");
      path_.emplace(r, positional[0], false);
      positional.erase(positional.begin());
    }
    if (positional.empty()) return;  // the item's own truth
    test_ = positional[0].is_string() ? FindTest(positional[0].text()) : nullptr;
    if (test_ == nullptr) Fail("TemplateRuntimeError", "No test named ", Repr(r, positional[0]), ".");
    positional.erase(positional.begin());
  }
  bool Advance(Runtime& r, Value& item) override {
    while (cursor().Next(item)) {
      Value tested = path_ ? path_->Get(r, item, Value(), false) : item;
      bool passes = test_ != nullptr ? test_(r, tested, arguments_) : Truthy(tested);
      if (passes == wanted_) return true;
    }
    return false;
  }

  TestFunction test_ = nullptr;
  bool wanted_, by_attribute_;
};

class UniqueIterator : public IteratorObject {
 public:
  UniqueIterator(Runtime& r, const Value& input, const Bound& a)
      : IteratorObject(r.heap(), sizeof(UniqueIterator), "generator"), input_(input), path_(std::in_place, r, a[1], false),
        fold_(!a.Truth(0, false)) {}
  void Clear() override {
    input_ = seen_ = Value();
    cursor_.reset();
    path_.reset();
  }
  bool Next(Runtime& r, Value& item) override {
    if (!cursor_) {
      cursor_.emplace(r, input_);
      seen_ = MakeDict(r.heap());
    }
    auto& seen = seen_.As<DictObject>();
    while (cursor_->Next(item)) {
      Value key = path_->Get(r, item, Value(), fold_);
      if (seen.Find(key) != nullptr) continue;
      seen.Set(key, Value::None());
      return true;
    }
    return false;
  }

 private:
  Value input_, seen_;
  std::optional<AttributePath> path_;
  bool fold_;
  std::optional<Cursor> cursor_;
};

Value Map(Runtime& r, const Value& v, const Arguments& a) { return Value::Of(Kind::kIterator, new MapIterator(r, v, a)); }

template <bool kWanted, bool kByAttribute>
Value Select(Runtime& r, const Value& v, const Arguments& a) {
  return Value::Of(Kind::kIterator, new SelectIterator(r, v, a, kWanted, kByAttribute));
}

Value Unique(Runtime& r, const Value& v, const Arguments& arguments) {
  return Value::Of(Kind::kIterator, new UniqueIterator(r, v, Bound("unique", arguments, {"case_sensitive", "attribute"})));
}

constexpr FilterEntry kFilters[] = {
    {"map", Map},
    {"select", Select<true, false>},
    {"reject", Select<false, false>},
    {"selectattr", Select<true, true>},
    {"rejectattr", Select<false, true>},
    {"unique", Unique},
};

}  // namespace

FilterTable SelectionFilters() { return {kFilters, std::size(kFilters)}; }

}  // namespace halfbyte::text::jinja
