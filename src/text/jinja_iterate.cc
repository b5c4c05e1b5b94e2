#include "text/jinja_iterate.h"

#include "text/jinja_text.h"
#include "text/jinja_unicode.h"

namespace halfbyte::text::jinja {
namespace {

using Kind = Value::Kind;

class CursorIterator : public IteratorObject {
 public:
  CursorIterator(Runtime& r, const Value& iterable, const char* name)
      : IteratorObject(r.heap(), sizeof(CursorIterator), name), cursor_(std::in_place, r, iterable) {}
  void Clear() override { done_ = true; cursor_.reset(); }
  bool Next(Runtime&, Value& item) override { return !done_ && cursor_->Next(item); }

 private:
  std::optional<Cursor> cursor_;
  bool done_ = false;
};

}  // namespace

bool IsIterable(const Value& v) {
  switch (v.kind()) {
    case Kind::kUndefined: case Kind::kString: case Kind::kTuple: case Kind::kList: case Kind::kDict: case Kind::kRange:
    case Kind::kView: case Kind::kIterator: return true;
    default: return false;
  }
}

Cursor::Cursor(Runtime& r, Value iterable) : r_(r), iterable_(std::move(iterable)) {
  if (!IsIterable(iterable_)) Fail("TypeError", "'", TypeName(iterable_), "' object is not iterable");
}

bool Cursor::Next(Value& item) {
  r_.Step();
  switch (iterable_.kind()) {
    case Kind::kString: {
      std::string_view s = iterable_.text();
      if (position_ >= s.size()) return false;
      size_t n = 0;
      DecodeAt(s, position_, n);
      item = iterable_.Part(s.substr(position_, n)).WithMarkup(false);
      position_ += n;
      return true;
    }
    case Kind::kTuple: case Kind::kList: {
      const auto& items = iterable_.As<SequenceObject>().items;
      if (position_ >= items.size()) return false;
      item = items[position_++];
      return true;
    }
    case Kind::kDict: {
      const auto& entries = iterable_.As<DictObject>().entries();
      if (position_ >= entries.size()) return false;
      item = entries[position_++].first;
      return true;
    }
    case Kind::kView: {
      const ViewObject& view = iterable_.As<ViewObject>();
      const auto& entries = view.dict.As<DictObject>().entries();
      if (position_ >= entries.size()) return false;
      const auto& [key, value] = entries[position_++];
      if (view.what == ViewObject::What::kKeys) item = key;
      else if (view.what == ViewObject::What::kValues) item = value;
      else item = r_.Tuple({key, value});
      return true;
    }
    case Kind::kRange: {
      const RangeObject& range = iterable_.As<RangeObject>();
      if (position_ >= static_cast<size_t>(range.size)) return false;
      item = Value::Integer(static_cast<Int>(range.start) + static_cast<Int>(position_++) * range.step);
      return true;
    }
    case Kind::kIterator: {
      DepthGuard guard(r_);  // iterators stand on iterators: x|map(..)|map(..)|...
      return iterable_.As<IteratorObject>().Next(r_, item);
    }
    default: return false;
  }
}

std::vector<Value> Collect(Runtime& r, const Value& iterable) {
  std::vector<Value> items;
  Cursor cursor(r, iterable);
  for (Value v; cursor.Next(v);) {
    if (items.size() % 1024 == 0) r.heap().CheckRoom(items.size() * sizeof(Value));
    items.push_back(std::move(v));
  }
  return items;
}

Value MakeIterator(Runtime& r, const Value& iterable, const char* type_name) {
  return Value::Of(Kind::kIterator, new CursorIterator(r, iterable, type_name));
}

}  // namespace halfbyte::text::jinja
