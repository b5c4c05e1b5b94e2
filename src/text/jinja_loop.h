// The `loop` variable of a {% for %}: it walks the iterable one item ahead where it is asked to.
#pragma once

#include <optional>

#include "text/jinja_iterate.h"

namespace halfbyte::text::jinja {

class LoopObject : public Object {
 public:
  // `recurse`: a callable (iterable, depth) that renders the loop's body again, missing where the loop is not recursive.
  LoopObject(Runtime& r, const Value& iterable, int64_t depth0, Value recurse);
  void Clear() override;

  bool Next(Value& item);  // steps to the next iteration
  int64_t index() const { return index0_ + 1; }
  // len() of the iterable, or what a count of the items that are still to come says (which reads them).
  int64_t Length();
  // loop.index, loop.last, loop.cycle, ...; false where there is no such attribute.
  bool Attribute(const Value& self, std::string_view name, Value& out);
  Value Call(const Arguments& arguments);
  Value Cycle(const Arguments& arguments);
  Value Changed(const Arguments& arguments);

 private:
  bool PeekNext();

  Runtime& r_;
  Value iterable_;
  std::optional<Cursor> cursor_;
  Value recurse_;
  int64_t depth0_;
  int64_t index0_ = -1;
  std::optional<int64_t> length_;
  Value before_, current_, after_;
  Value last_changed_;
};

}  // namespace halfbyte::text::jinja
