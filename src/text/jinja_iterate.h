// Going through whatever a template may iterate over.
#pragma once

#include "text/jinja_runtime.h"

namespace halfbyte::text::jinja {

bool IsIterable(const Value& v);

// Python's iter(): a TypeError where the value is not iterable. Strings give characters, dicts keys, undefined nothing. Each
// step counts. It holds the value that it walks.
class Cursor {
 public:
  Cursor(Runtime& r, Value iterable);
  bool Next(Value& item);

 private:
  Runtime& r_;
  Value iterable_;
  size_t position_ = 0;
};

// list(v)
std::vector<Value> Collect(Runtime& r, const Value& iterable);

// An iterator Value over whatever a Cursor walks; `type_name` is Python's name for it.
Value MakeIterator(Runtime& r, const Value& iterable, const char* type_name);

}  // namespace halfbyte::text::jinja
