// HTTP/1.1 over TCP, or TLS: connections, limits, time-outs, keep-alive, draining. What requests mean is the handler's business.
//
// One thread runs all sockets; the handler must return at once and leave the work to others. Bounded against every client: connections, header
// bytes, body bytes, time for each phase, bytes that wait for a slow reader. A client that closes its side, or half of it, has hung up. Requests that are pipelined
// are answered one after the other, in order.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "base/result.h"
#include "server/http.h"

namespace halfbyte::server {

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8000;                                // 0: any free one
  size_t max_header_bytes = 16 << 10;             // 431 beyond
  size_t max_body_bytes = 32 << 20;               // 413 beyond
  size_t max_connections = 4096;                  // 503 beyond
  size_t max_waiting_bytes = 8 << 20;             // of a stream whose client does not read; then it counts as gone
  std::chrono::milliseconds header_timeout{15000};  // from its first byte to its last
  std::chrono::milliseconds body_timeout{60000};
  std::chrono::milliseconds idle_timeout{75000};  // between requests
  std::chrono::milliseconds write_timeout{30000}; // without the system taking what was written
  std::chrono::milliseconds drain_timeout{30000}; // of answers under way when the server is told to stop
  std::string cors_origin;                        // Access-Control-Allow-Origin; empty: other origins are refused (403)
  std::string tls_cert, tls_key;                  // PEM files; both or none
  bool handle_signals = true;                     // SIGINT and SIGTERM drain, a second one ends at once
};

struct HttpHandler {
  // Looks at a request whose body has not been read; an answer here is final. `request.body` is empty.
  std::function<std::optional<HttpResponse>(const HttpRequest&)> gate;
  std::function<void(std::shared_ptr<Exchange>)> handle;
  std::function<void()> draining;  // no new connection from now on; answers under way may finish
  std::function<void()> cut;       // the time for that is over
};

// What HttpOptions::host may be: an IP address or "localhost". No name is looked up: it might mean other machines tomorrow.
base::Status CheckHost(const std::string& host);
// Whether the files of tls_cert and tls_key can be read and belong together; fine where there are none.
base::Status CheckTls(const HttpOptions& options);

class HttpServer {
 public:
  // Listens, so that port() is known; kInvalidArgument or kIo say why it cannot.
  static base::Result<std::unique_ptr<HttpServer>> Create(HttpOptions options, HttpHandler handler);
  ~HttpServer();

  int port() const;
  // Runs until it was told to stop and has drained.
  void Run();
  // From any thread.
  void Stop();
  int64_t connections() const;

 private:
  struct Impl;
  HttpServer();
  std::unique_ptr<Impl> impl_;
};

}  // namespace halfbyte::server
