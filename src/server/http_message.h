// Bytes of an HTTP/1.1 answer.
#pragma once

#include "server/http.h"

namespace halfbyte::server {

struct WireOptions {
  bool chunked = false;     // no content-length, chunks follow
  bool until_close = false; // a stream for HTTP/1.0: no length at all, the body ends with the connection
  bool keep_alive = true;
  bool http10 = false;
  bool head_only = false;   // the answer to HEAD: the lengths of the body, not the body
  std::string cors_origin = {};  // empty: none
};

// Status line, header fields and, unless chunked or head_only, the body.
std::string WireResponse(const HttpResponse& response, const WireOptions& options);
std::string WireChunk(std::string_view bytes);     // of at least one byte
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace halfbyte::server
