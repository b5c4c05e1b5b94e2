// `self` in a template: self.name() renders the block of that name.
#pragma once

#include "text/jinja_objects.h"

namespace halfbyte::text::jinja {

struct SelfObject : Object {
  explicit SelfObject(Heap& heap) : Object(heap, sizeof(SelfObject)) {}
  virtual bool FindBlock(Runtime& r, std::string_view name, Value& out) = 0;
};

}  // namespace halfbyte::text::jinja
