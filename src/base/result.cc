#include "base/result.h"

#include <cstdio>

namespace halfbyte::base {

std::string_view ErrorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "invalid argument";
    case ErrorCode::kNotFound: return "not found";
    case ErrorCode::kBadFile: return "bad file";
    case ErrorCode::kUnsupported: return "unsupported";
    case ErrorCode::kOutOfMemory: return "out of memory";
    case ErrorCode::kIo: return "I/O error";
    case ErrorCode::kCancelled: return "cancelled";
    case ErrorCode::kUnavailable: return "unavailable";
    case ErrorCode::kInternal: return "internal error";
  }
  return "unknown error";
}

std::string Error::ToString() const {
  std::string out;
  for (const std::string& where : context_) out += where + ": ";
  out += message_;
  if (!hint_.empty()) out += " (" + hint_ + ")";
  return out;
}

StringBuilder& StringBuilder::Add(double d) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%g", d);
  text_.append(buffer);
  return *this;
}

}  // namespace halfbyte::base
