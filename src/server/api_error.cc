#include "server/api_error.h"

namespace halfbyte::server {
namespace {

std::string_view TypeOf(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 429: return "rate_limit_error";
    default: return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

}  // namespace

base::Json ErrorJson(const ApiError& error) {
  auto text = [](const std::string& s) { return s.empty() ? base::Json() : base::Json(s); };
  base::Json inner = base::Json::MakeObject(), outer = base::Json::MakeObject();
  inner.Set("message", error.message);
  inner.Set("type", TypeOf(error.status));
  inner.Set("param", text(error.param));
  inner.Set("code", text(error.code));
  outer.Set("error", std::move(inner));
  return outer;
}

HttpResponse ErrorResponse(const ApiError& error) {
  HttpResponse r;
  r.status = error.status;
  r.body = ErrorJson(error).Dump();
  if (error.status == 401) r.headers.emplace_back("www-authenticate", "Bearer");
  if (error.status == 429 || error.status == 503) r.headers.emplace_back("retry-after", "1");
  return r;
}

ApiError FromError(const base::Error& error) {
  switch (error.code()) {
    case base::ErrorCode::kInvalidArgument:
    case base::ErrorCode::kUnsupported: return {400, error.ToString(), "", "invalid_value"};
    case base::ErrorCode::kUnavailable: return {429, error.ToString(), "", "queue_full"};
    case base::ErrorCode::kCancelled: return {503, error.ToString(), "", "cancelled"};
    default: return {500, error.ToString(), "", "internal_error"};
  }
}

}  // namespace halfbyte::server
