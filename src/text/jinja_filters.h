// The filters: x|name(arguments).
#pragma once

#include "text/jinja_runtime.h"

namespace halfbyte::text::jinja {

using FilterFunction = Value (*)(Runtime& r, const Value& value, const Arguments& arguments);

// nullptr where there is no such filter.
FilterFunction FindFilter(std::string_view name);

struct FilterEntry {
  const char* name;
  FilterFunction function;
};
struct FilterTable {
  const FilterEntry* entries;
  size_t count;
};
FilterTable TextFilters();
FilterTable NumberFilters();
FilterTable SequenceFilters();
FilterTable SelectionFilters();

// |tojson: json.dumps with ensure_ascii, indent, separators and sort_keys.
Value ToJsonFilter(Runtime& r, const Value& value, const Arguments& arguments);

}  // namespace halfbyte::text::jinja
