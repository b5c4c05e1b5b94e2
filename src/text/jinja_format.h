// str.format and str.format_map, with the sandbox's rule that fields are looked up as the template itself would.
#pragma once

#include "text/jinja_runtime.h"

namespace halfbyte::text::jinja {

Value FormatMethod(Runtime& r, const Value& self, const Arguments& arguments);
Value FormatMapMethod(Runtime& r, const Value& self, const Arguments& arguments);

// format(v, spec)
std::string FormatValue(Runtime& r, const Value& v, std::string_view spec);

}  // namespace halfbyte::text::jinja
