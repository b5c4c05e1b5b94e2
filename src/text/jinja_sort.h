// Python's sorted(): stable, by "<" alone, which may fail.
#pragma once

#include <vector>

#include "text/jinja_iterate.h"

namespace halfbyte::text::jinja {

struct KeyedValue {
  Value key, value;
};

// `reverse` keeps the order of equal ones, as Python does. (std::stable_sort is not used: with an order that is none, such as
// NaN's, or a comparison that throws, its behaviour is undefined.)
void SortByKey(Runtime& r, std::vector<KeyedValue>& items, bool reverse);

// A path such as "a.b.0" or an int, as |map(attribute=...), |sort and others take it.
class AttributePath {
 public:
  // None or missing: the item itself. `commas`: several paths; then Get gives a list.
  AttributePath(Runtime& r, const Value& attribute, bool commas);
  // `fallback` replaces an undefined on the way, unless it is missing or None; `fold_case` lowers strings.
  Value Get(Runtime& r, const Value& item, const Value& fallback, bool fold_case) const;

 private:
  Value Follow(Runtime& r, const std::vector<Value>& path, const Value& item, const Value& fallback, bool fold_case) const;
  std::vector<std::vector<Value>> paths_;
  bool several_;
};

}  // namespace halfbyte::text::jinja
