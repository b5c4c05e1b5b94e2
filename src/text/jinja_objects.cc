#include "text/jinja_objects.h"

#include <algorithm>

#include "text/jinja_compare.h"
#include "text/jinja_error.h"
#include "text/jinja_text.h"

namespace halfbyte::text::jinja {

size_t DictObject::Search(const Value& key) const {
  if (index_.empty()) {
    CheckHashable(key);
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (CompareKeys(entries_[i].first, key) == 0) return i;
    }
    return entries_.size();
  }
  auto it = std::lower_bound(index_.begin(), index_.end(), key,
                             [&](uint32_t i, const Value& k) { return CompareKeys(entries_[i].first, k) < 0; });
  return it != index_.end() && CompareKeys(entries_[*it].first, key) == 0 ? *it : entries_.size();
}

const Value* DictObject::Find(const Value& key) const {
  size_t i = Search(key);
  return i < entries_.size() ? &entries_[i].second : nullptr;
}

const Value* DictObject::Find(std::string_view key) const { return Find(Value::Borrowed(key)); }

void DictObject::Set(const Value& key, Value value) {
  size_t i = Search(key);
  if (i < entries_.size()) { entries_[i].second = std::move(value); return; }
  Charge(2 * sizeof(Value) + sizeof(uint32_t));
  entries_.emplace_back(key, std::move(value));
  auto less = [&](uint32_t a, uint32_t b) { return CompareKeys(entries_[a].first, entries_[b].first) < 0; };
  auto place = static_cast<uint32_t>(i);
  if (!index_.empty()) {
    index_.insert(std::lower_bound(index_.begin(), index_.end(), place, less), place);
  } else if (entries_.size() > kSearched) {
    for (uint32_t j = 0; j < entries_.size(); ++j) index_.push_back(j);
    std::sort(index_.begin(), index_.end(), less);
  }
}

RangeObject::RangeObject(Heap& heap, int64_t first, int64_t end, int64_t by)
    : Object(heap, sizeof(RangeObject)), start(first), stop(end), step(by), size(0) {
  // In 128 bits, so that range(INT64_MIN, INT64_MAX) has a size to refuse.
  Int span = by > 0 ? static_cast<Int>(end) - first : static_cast<Int>(first) - end;
  Int width = by > 0 ? by : -static_cast<Int>(by);
  Int count = span > 0 ? (span + width - 1) / width : 0;
  size = static_cast<int64_t>(std::min<Int>(count, INT64_MAX));
}

std::string UndefinedObject::Message() const {
  if (!hint.empty()) return hint;
  std::string text;
  if (owner == nullptr) {
    AppendKeyRepr(text, name);
    return text + " is undefined";
  }
  std::string type = std::string(owner) == "None" ? owner : std::string(owner) + " object";
  if (!name.is_string()) {
    text = type + " has no element ";
    AppendKeyRepr(text, name);
    return text;
  }
  if (unsafe) {
    text = "access to attribute ";
    AppendKeyRepr(text, name);
    return text + " of '" + owner + "' object is unsafe.";
  }
  text = "'" + type + "' has no attribute ";
  AppendKeyRepr(text, name);
  return text;
}

Value MakeList(Heap& heap, std::vector<Value> items) {
  return Value::Of(Value::Kind::kList, new SequenceObject(heap, std::move(items)));
}
Value MakeTuple(Heap& heap, std::vector<Value> items) {
  return Value::Of(Value::Kind::kTuple, new SequenceObject(heap, std::move(items)));
}
Value MakeDict(Heap& heap) { return Value::Of(Value::Kind::kDict, new DictObject(heap)); }

Value MakeUndefined(Heap& heap, std::string hint) {
  return Value::Of(Value::Kind::kUndefined, new UndefinedObject(heap, std::move(hint)));
}

Value MakeUndefinedVariable(Heap& heap, std::string_view name) {
  auto* object = new UndefinedObject(heap, "");
  object->name = Value::Borrowed(name);
  return Value::Of(Value::Kind::kUndefined, object);
}

Value MakeUndefinedMember(Heap& heap, const Value& owner, Value name, bool unsafe) {
  auto* object = new UndefinedObject(heap, "");
  Value result = Value::Of(Value::Kind::kUndefined, object);
  object->owner = owner.is_none() ? "None" : TypeName(owner);
  object->name = std::move(name);
  object->unsafe = unsafe;
  return result;
}

}  // namespace halfbyte::text::jinja
