// Binding a call's arguments to the parameters of a built-in function.
#pragma once

#include <array>
#include <initializer_list>

#include "text/jinja_runtime.h"

namespace halfbyte::text::jinja {

class Bound {
 public:
  // `names` are the parameters in order; the first `required` of them must be given. A TypeError says what does not fit.
  Bound(const char* function, const Arguments& arguments, std::initializer_list<const char*> names, size_t required = 0);
  // As above for a function whose parameters have no names for the caller.
  static Bound Positional(const char* function, const Arguments& arguments, size_t required, size_t most);

  const Value& operator[](size_t i) const { return values_[i]; }
  bool Has(size_t i) const { return !values_[i].is_missing(); }
  bool HasValue(size_t i) const { return Has(i) && !values_[i].is_none(); }
  // The parameter as Python's operator.index() takes it.
  Int Integer(size_t i, Int otherwise) const;
  // Its str, a TypeError for other types.
  std::string_view Text(size_t i, std::string_view otherwise) const;
  bool Truth(size_t i, bool otherwise) const;

 private:
  explicit Bound(const char* function) : function_(function) {}
  static constexpr size_t kMost = 6;
  const char* function_;
  std::array<Value, kMost> values_;
};

// An int that counts something in memory or steps, clamped so that sums with sizes do not overflow.
int64_t Clamp64(Int i);

}  // namespace halfbyte::text::jinja
