#include "text/jinja_sort.h"

#include "text/jinja_compare.h"
#include "text/jinja_literal.h"
#include "text/jinja_operations.h"
#include "text/jinja_unicode.h"

namespace halfbyte::text::jinja {
namespace {

// Merges the sorted runs [low, middle) and [middle, high) of `from` into `to`.
void Merge(Runtime& r, std::vector<KeyedValue>& from, std::vector<KeyedValue>& to, size_t low, size_t middle, size_t high,
           bool reverse) {
  size_t left = low, right = middle;
  for (size_t i = low; i < high; ++i) {
    bool take_right;
    if (left == middle) take_right = true;
    else if (right == high) take_right = false;
    else take_right = reverse ? Less(r, from[left].key, from[right].key) : Less(r, from[right].key, from[left].key);
    to[i] = std::move(take_right ? from[right++] : from[left++]);
  }
}

std::vector<Value> PathOf(Runtime& r, const Value& attribute) {
  std::vector<Value> parts;
  if (attribute.is_missing() || attribute.is_none()) return parts;
  if (!attribute.is_string()) return {attribute};
  std::string_view rest = attribute.text();
  for (;;) {
    size_t dot = std::min(rest.find('.'), rest.size());
    std::string_view part = rest.substr(0, dot);
    Int number = 0;
    bool numeric = !part.empty() && part.find_first_not_of("0123456789") == part.npos && ParseInt(part, 10, number);
    parts.push_back(numeric ? Value::Integer(number) : attribute.Part(part));
    r.Step();
    if (dot == rest.size()) return parts;
    rest.remove_prefix(dot + 1);
  }
}

}  // namespace

void SortByKey(Runtime& r, std::vector<KeyedValue>& items, bool reverse) {
  std::vector<KeyedValue> other(items.size());
  for (size_t width = 1; width < items.size(); width *= 2) {
    for (size_t low = 0; low < items.size(); low += 2 * width) {
      size_t middle = std::min(low + width, items.size()), high = std::min(low + 2 * width, items.size());
      Merge(r, items, other, low, middle, high, reverse);
    }
    items.swap(other);
  }
}

AttributePath::AttributePath(Runtime& r, const Value& attribute, bool commas) : several_(commas) {
  if (!commas || !attribute.is_string()) {
    paths_.push_back(PathOf(r, attribute));
    return;
  }
  std::string_view rest = attribute.text();
  for (;;) {
    size_t comma = std::min(rest.find(','), rest.size());
    paths_.push_back(PathOf(r, attribute.Part(rest.substr(0, comma))));
    if (comma == rest.size()) return;
    rest.remove_prefix(comma + 1);
  }
}

Value AttributePath::Follow(Runtime& r, const std::vector<Value>& path, const Value& item, const Value& fallback,
                            bool fold_case) const {
  Value v = item;
  for (const Value& part : path) {
    v = GetItem(r, v, part);
    if (v.is_undefined() && !fallback.is_missing() && !fallback.is_none()) v = fallback;
  }
  return fold_case && v.is_string() ? r.String(ToLower(v.text())) : v;
}

Value AttributePath::Get(Runtime& r, const Value& item, const Value& fallback, bool fold_case) const {
  if (!several_) return Follow(r, paths_[0], item, fallback, fold_case);
  std::vector<Value> values;
  for (const auto& path : paths_) values.push_back(Follow(r, path, item, fallback, fold_case));
  return r.List(std::move(values));
}

}  // namespace halfbyte::text::jinja
