// The tests: x is name(arguments).
#pragma once

#include "text/jinja_runtime.h"

namespace halfbyte::text::jinja {

using TestFunction = bool (*)(Runtime& r, const Value& value, const Arguments& arguments);

// nullptr where there is no such test.
TestFunction FindTest(std::string_view name);

}  // namespace halfbyte::text::jinja
