// The HTTP side as the routes see it: a request, an answer, and the exchange that joins them. No socket, no library type.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace halfbyte::server {

struct HttpRequest {
  std::string method;         // "POST", upper case as it came
  std::string path;           // without query, percent signs as they came
  std::string query;          // after '?', may be empty
  std::string body;
  std::string authorization;  // header fields, empty where absent
  std::string origin, host, request_id;
  bool http10 = false;
};

using HeaderList = std::vector<std::pair<std::string, std::string>>;

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  HeaderList headers;
};

// One request and its answer. Every method may be called from any thread, at any time, also after the client has gone: then it does nothing.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const HttpRequest& request() const = 0;

  // The whole answer. Ignored where an answer was begun already.
  virtual void Send(HttpResponse response) = 0;
  // A streamed one: Begin (the body of `head` is ignored), Write any number of times, End. Pieces that wait for the socket are joined.
  virtual void Begin(HttpResponse head) = 0;
  virtual void Write(std::string piece) = 0;
  virtual void End() = 0;
  virtual bool begun() const = 0;

  // Calls f once, as soon as the client has hung up (or at once where it has), on the thread of the sockets: f must be short. Not called after
  // a complete answer.
  virtual void WhenGone(std::function<void()> f) = 0;
  virtual bool gone() const = 0;
};

// "Bad Request" for 400
std::string_view ReasonPhrase(int status);

}  // namespace halfbyte::server
