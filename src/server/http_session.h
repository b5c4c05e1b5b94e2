// A session: the requests and answers of one connection, one after the other.
#pragma once

#include <atomic>
#include <chrono>
#include <set>

#include "server/http_server.h"

namespace boost::asio {
class io_context;
namespace ssl {
class context;
}
}  // namespace boost::asio

namespace halfbyte::server {

class Connection;

// What the connections of a server share; all but `count` belongs to the thread of the sockets.
struct Connections {
  HttpOptions options;
  HttpHandler handler;
  std::set<Connection*> open;
  std::atomic<int64_t> count{0};
  bool draining = false;
};

// A connection as the server sees it: it can be late, idle, and closed.
class Connection {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Connection(Connections& connections) : connections_(connections) {
    connections_.open.insert(this);
    ++connections_.count;
  }
  virtual ~Connection() {
    connections_.open.erase(this);
    --connections_.count;
  }
  virtual void Close() = 0;
  virtual bool busy() const = 0;  // a request is being answered
  Clock::time_point deadline() const { return deadline_; }

 protected:
  void Within(std::chrono::milliseconds time) { deadline_ = Clock::now() + time; }
  void WithoutDeadline() { deadline_ = Clock::time_point::max(); }

  Connections& connections_;

 private:
  Clock::time_point deadline_ = Clock::time_point::max();
};

// Serves an accepted TCP socket, which it owns from now on, until either side ends it; through TLS where a context is given. `connections` and `io` must
// outlive it: destroying `io` ends the sessions that are left.
void StartSession(Connections& connections, boost::asio::io_context& io, int descriptor, bool v6, boost::asio::ssl::context* tls);

}  // namespace halfbyte::server
