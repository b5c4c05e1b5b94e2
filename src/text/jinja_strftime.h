// strftime_now's formatting: the C library's, in the C locale, with Python's %f.
#pragma once

#include <string>
#include <string_view>

#include "text/jinja.h"

namespace halfbyte::text::jinja {

std::string FormatTime(const JinjaTime& time, std::string_view format);

}  // namespace halfbyte::text::jinja
