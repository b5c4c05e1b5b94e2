// Result<T>: what everything returns that a file, a flag, a request or a memory limit can make fail.
//
// An Error says what happened, where (a chain of context, outermost first) and what to do about it. No exception crosses a
// folder boundary; a programmer's mistake is not an Error but an HB_CHECK (base/check.h).
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace halfbyte::base {

enum class ErrorCode {
  kInvalidArgument,  // the caller asked for something that makes no sense (wrong usage, HTTP 400)
  kNotFound,         // a file, tensor or name that is not there
  kBadFile,          // a file whose content breaks its format
  kUnsupported,      // well formed, but not something this build or machine can do
  kOutOfMemory,      // does not fit; checked before loading where it can be
  kIo,               // the operating system said no
  kCancelled,        // the request was withdrawn or the process is stopping
  kUnavailable,      // try again later (queue full, model being loaded)
  kInternal,         // a broken promise of ours that must not take the process down
};

std::string_view ErrorCodeName(ErrorCode code);

class [[nodiscard]] Error {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::string& hint() const { return hint_; }

  // Adds where it happened; call it on the way up, so that the outermost place ends up first.
  Error&& At(std::string where) && {
    context_.insert(context_.begin(), std::move(where));
    return std::move(*this);
  }
  // Says what the user can do about it.
  Error&& Hint(std::string hint) && {
    hint_ = std::move(hint);
    return std::move(*this);
  }
  // "shard model-2.safetensors: tensor x: offsets end at 64, the file has 32 bytes (download it again)"
  std::string ToString() const;

 private:
  ErrorCode code_;
  std::string message_;
  std::string hint_;
  std::vector<std::string> context_;
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = tl::expected<void, Error>;

// return Fail(ErrorCode::kBadFile, "...");  converts to any Result.
template <typename... Parts>
tl::unexpected<Error> Fail(ErrorCode code, Parts&&... parts);
inline tl::unexpected<Error> Fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

// "a", 3, 'c', std::string -> one string; floats are printed with %g.
class StringBuilder {
 public:
  StringBuilder& Add(std::string_view s) { text_.append(s); return *this; }
  StringBuilder& Add(const char* s) { text_.append(s); return *this; }
  StringBuilder& Add(const std::string& s) { text_.append(s); return *this; }
  StringBuilder& Add(char c) { text_.push_back(c); return *this; }
  StringBuilder& Add(bool b) { text_.append(b ? "true" : "false"); return *this; }
  StringBuilder& Add(double d);
  StringBuilder& Add(float d) { return Add(static_cast<double>(d)); }
  template <typename Int>
    requires std::is_integral_v<Int>
  StringBuilder& Add(Int i) { text_.append(std::to_string(i)); return *this; }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

template <typename... Parts>
std::string StrCat(const Parts&... parts) {
  StringBuilder b;
  (b.Add(parts), ...);
  return b.Take();
}

template <typename... Parts>
tl::unexpected<Error> Fail(ErrorCode code, Parts&&... parts) {
  return tl::unexpected<Error>(Error(code, StrCat(parts...)));
}

}  // namespace halfbyte::base

// HB_RETURN_IF_ERROR(expr);             expr is a Status or a Result; its error is returned
// HB_ASSIGN_OR_RETURN(auto x, expr);    x = the value, or the error is returned
// HB_ASSIGN_OR_RETURN_AT(auto x, expr, where);   the same, with context added
#define HB_CONCAT_INNER(a, b) a##b
#define HB_CONCAT(a, b) HB_CONCAT_INNER(a, b)
#define HB_RETURN_IF_ERROR(...)                                                              \
  do {                                                                                       \
    if (auto hb_status = (__VA_ARGS__); !hb_status)                                          \
      return ::halfbyte::base::Fail(std::move(hb_status).error());                           \
  } while (false)
#define HB_ASSIGN_OR_RETURN_IMPL(tmp, lhs, ...)                                              \
  auto tmp = (__VA_ARGS__);                                                                  \
  if (!tmp) return ::halfbyte::base::Fail(std::move(tmp).error());                           \
  lhs = std::move(*tmp)
#define HB_ASSIGN_OR_RETURN(lhs, ...) HB_ASSIGN_OR_RETURN_IMPL(HB_CONCAT(hb_tmp_, __LINE__), lhs, __VA_ARGS__)
#define HB_ASSIGN_OR_RETURN_AT_IMPL(tmp, lhs, expr, where)                                   \
  auto tmp = (expr);                                                                         \
  if (!tmp) return ::halfbyte::base::Fail(std::move(tmp).error().At(where));                 \
  lhs = std::move(*tmp)
#define HB_ASSIGN_OR_RETURN_AT(lhs, expr, where) \
  HB_ASSIGN_OR_RETURN_AT_IMPL(HB_CONCAT(hb_tmp_, __LINE__), lhs, expr, where)
