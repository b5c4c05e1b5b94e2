// What a request can do wrong, in OpenAI's shape: {"error": {"message", "type", "param", "code"}}.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "server/http.h"

namespace halfbyte::server {

struct ApiError {
  int status = 400;
  std::string message;
  std::string param;  // the field that is wrong; null in the body where empty
  std::string code;   // likewise
};

base::Json ErrorJson(const ApiError& error);
// 401 asks for the key, 429 and 503 say when to come back.
HttpResponse ErrorResponse(const ApiError& error);
// 400 for what the caller did, 429 for a full queue, 503 while stopping, 504 out of time, 500 otherwise.
ApiError FromError(const base::Error& error);

}  // namespace halfbyte::server
