// A small HTTP client on a raw socket, which can also misbehave. Everything is bounded by a time-out.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"

namespace halfbyte::server {

struct Answer {
  int status = 0;  // 0: the connection ended before a whole answer
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  base::Json json() const;                // null where the body is no JSON
  std::vector<base::Json> events() const; // of a stream, without [DONE]
  bool done() const { return body.find("data: [DONE]") != std::string::npos; }
};

class Client {
 public:
  explicit Client(int port, int timeout_ms = 20000);
  ~Client();
  Client(const Client&) = delete;

  bool Send(std::string_view bytes);
  Answer Read();                 // one answer
  std::string ReadSome();        // whatever comes next; "" at the end
  void CloseWrites();            // half of the connection
  void Close();
  int socket() const { return socket_; }

  static std::string Request(std::string_view method, std::string_view path, std::string_view body = "", std::string_view headers = "");
  Answer Ask(std::string_view method, std::string_view path, std::string_view body = "", std::string_view headers = "") {
    Send(Request(method, path, body, headers));
    return Read();
  }

 private:
  int socket_ = -1;
  std::string rest_;
};

inline Answer Post(int port, std::string_view path, std::string_view body, std::string_view headers = "") { return Client(port).Ask("POST", path, body, headers); }
inline Answer Get(int port, std::string_view path, std::string_view headers = "") { return Client(port).Ask("GET", path, "", headers); }

}  // namespace halfbyte::server
