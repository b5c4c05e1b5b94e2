// How a template fails inside the engine. Thrown within jinja_*.cc only; JinjaTemplate turns it into a base::Error, so no
// exception leaves the folder. Exceptions were chosen over Result here because nearly every operation of an expression can
// fail, fifty calls deep, and always in the same way: the render is over.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace halfbyte::text::jinja {

struct TemplateError {
  enum class Kind {
    kSyntax,  // the template itself is wrong
    kRaised,  // raise_exception: `message` is the template's own
    kFailed,  // an operation failed on these values; `message` starts with the name of Python's exception
    kLimit,   // steps, output, memory or depth ran out
  };
  Kind kind;
  std::string message;
  int line = 0;  // 1 is the first; 0 not known yet
};

// Fail("TypeError", "'", name, "' object is not iterable");
template <typename... Parts>
[[noreturn]] void Fail(const char* exception, const Parts&... parts) {
  throw TemplateError{TemplateError::Kind::kFailed, base::StrCat(exception, ": ", parts...)};
}
template <typename... Parts>
[[noreturn]] void FailLimit(const Parts&... parts) {
  throw TemplateError{TemplateError::Kind::kLimit, base::StrCat(parts...)};
}
template <typename... Parts>
[[noreturn]] void FailSyntax(int line, const Parts&... parts) {
  throw TemplateError{TemplateError::Kind::kSyntax, base::StrCat(parts...), line};
}

}  // namespace halfbyte::text::jinja
