#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace halfbyte::base {

void CheckFailed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "%s:%d: HB_CHECK(%s) failed%s%s\n", file, line, condition, message.empty() ? "" : ": ", message.c_str());
  std::abort();
}

}  // namespace halfbyte::base
