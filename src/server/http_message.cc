#include "server/http_message.h"

#include <cstdio>

namespace halfbyte::server {

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 200: return "OK";
    case 204: return "No Content";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 413: return "Content Too Large";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    default: return "Unknown";
  }
}

std::string WireResponse(const HttpResponse& r, const WireOptions& o) {
  std::string out = o.http10 ? "HTTP/1.0 " : "HTTP/1.1 ";
  out += std::to_string(r.status);
  out += ' ';
  out += ReasonPhrase(r.status);
  out += "\r\nserver: halfbyte\r\n";
  auto field = [&](std::string_view name, std::string_view value) {
    out.append(name).append(": ");
    for (char c : value) out += c == '\r' || c == '\n' ? ' ' : c;  // no value of ours may start another header field
    out += "\r\n";
  };
  if (r.status != 204) field("content-type", r.content_type);
  if (o.chunked) field("transfer-encoding", "chunked");
  else if (!o.until_close && r.status != 204) field("content-length", std::to_string(r.body.size()));
  field("connection", o.keep_alive ? "keep-alive" : "close");
  field("x-content-type-options", "nosniff");
  if (!o.cors_origin.empty()) {
    field("access-control-allow-origin", o.cors_origin);
    field("vary", "Origin");
  }
  for (const auto& [name, value] : r.headers) field(name, value);
  out += "\r\n";
  if (!o.chunked && !o.until_close && !o.head_only) out += r.body;
  return out;
}

std::string WireChunk(std::string_view bytes) {
  char size[24];
  const int n = std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  std::string out(size, static_cast<size_t>(n));
  out.append(bytes).append("\r\n");
  return out;
}

}  // namespace halfbyte::server
