#include "text/jinja_arguments.h"

#include <algorithm>

#include "text/jinja_compare.h"
#include "text/jinja_text.h"

namespace halfbyte::text::jinja {

Bound::Bound(const char* function, const Arguments& arguments, std::initializer_list<const char*> names, size_t required)
    : function_(function) {
  if (arguments.positional.size() > names.size()) {
    Fail("TypeError", function, "() takes at most ", names.size(), " argument(s) (", arguments.positional.size(), " given)");
  }
  std::copy(arguments.positional.begin(), arguments.positional.end(), values_.begin());
  for (const auto& [name, value] : arguments.keyword) {
    auto it = std::find_if(names.begin(), names.end(), [&](const char* n) { return name == n; });
    if (it == names.end()) Fail("TypeError", function, "() got an unexpected keyword argument '", name, "'");
    Value& slot = values_[static_cast<size_t>(it - names.begin())];
    if (!slot.is_missing()) Fail("TypeError", function, "() got multiple values for argument '", name, "'");
    slot = value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (values_[i].is_missing()) Fail("TypeError", function, "() missing required argument: '", names.begin()[i], "'");
  }
}

Bound Bound::Positional(const char* function, const Arguments& arguments, size_t required, size_t most) {
  if (!arguments.keyword.empty()) Fail("TypeError", function, "() takes no keyword arguments");
  size_t given = arguments.positional.size();
  if (given < required) Fail("TypeError", function, "() takes at least ", required, " argument (", given, " given)");
  if (given > most) Fail("TypeError", function, "() takes at most ", most, " argument(s) (", given, " given)");
  Bound bound(function);
  std::copy(arguments.positional.begin(), arguments.positional.end(), bound.values_.begin());
  return bound;
}

Int Bound::Integer(size_t i, Int otherwise) const {
  if (!Has(i)) return otherwise;
  if (!values_[i].is_integral()) {
    FailIfUndefined(values_[i]);
    Fail("TypeError", "'", TypeName(values_[i]), "' object cannot be interpreted as an integer");
  }
  return values_[i].integer();
}

std::string_view Bound::Text(size_t i, std::string_view otherwise) const {
  if (!Has(i)) return otherwise;
  if (!values_[i].is_string()) Fail("TypeError", function_, "() argument ", i + 1, " must be str, not ", TypeName(values_[i]));
  return values_[i].text();
}

bool Bound::Truth(size_t i, bool otherwise) const { return Has(i) ? Truthy(values_[i]) : otherwise; }

int64_t Clamp64(Int i) { return static_cast<int64_t>(std::clamp<Int>(i, INT64_MIN / 4, INT64_MAX / 4)); }

}  // namespace halfbyte::text::jinja
