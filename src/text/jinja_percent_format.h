// "..." % values: printf-style formatting.
#pragma once

#include "text/jinja_runtime.h"

namespace halfbyte::text::jinja {

// `values`: a tuple gives one value a conversion, a dict serves %(name)s, anything else is the one value.
Value PercentFormat(Runtime& r, const Value& format, const Value& values);

}  // namespace halfbyte::text::jinja
