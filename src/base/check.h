// HB_CHECK: a programmer's mistake ends the process with file, line and a message, in every build type.
#pragma once

#include "base/result.h"

namespace halfbyte::base {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition, const std::string& message);
}  // namespace halfbyte::base

// HB_CHECK(i < n, "row ", i, " of ", n);
#define HB_CHECK(condition, ...)                                                                   \
  do {                                                                                             \
    if (!(condition)) [[unlikely]]                                                                 \
      ::halfbyte::base::CheckFailed(__FILE__, __LINE__, #condition, ::halfbyte::base::StrCat(__VA_ARGS__)); \
  } while (false)
