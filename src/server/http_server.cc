#include "server/http_server.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <csignal>
#include <set>

#include "base/log.h"
#include "server/api_error.h"
#include "server/http_exchange.h"
#include "server/http_message.h"

namespace halfbyte::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;
using Clock = std::chrono::steady_clock;
using boost::system::error_code;
constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
constexpr size_t kReadAhead = 64 << 10;     // bytes of later requests that are read while one is answered
constexpr size_t kReadPiece = 16 << 10;
constexpr auto kReaperPeriod = std::chrono::milliseconds(500);  // how exactly time-outs are kept
constexpr auto kLinger = std::chrono::seconds(2);               // for an early answer to arrive although the request was not read to its end

class Connection;

// What the connections share; all on the one thread of `io`.
struct Shared {
  HttpOptions options;
  HttpHandler handler;
  std::set<Connection*> connections;
  std::atomic<int64_t> count{0};
  bool draining = false;
  asio::io_context io{1};  // last: its end destroys the sessions that are left, which sign off above
};

// A deadline and a bell. Kept apart from the session, which is a template.
class Connection {
 public:
  explicit Connection(Shared& shared) : shared_(shared), bell_(shared.io, Clock::time_point::max()) {
    shared_.connections.insert(this);
    ++shared_.count;
  }
  virtual ~Connection() {
    shared_.connections.erase(this);
    --shared_.count;
  }
  virtual void Close() = 0;
  void Ring() { bell_.cancel(); }
  Clock::time_point deadline() const { return deadline_; }
  bool busy() const { return exchange_ != nullptr; }

 protected:
  asio::awaitable<void> Bell() { co_await bell_.async_wait(kTuple); }
  void Within(std::chrono::milliseconds time) { deadline_ = Clock::now() + time; }
  void WithoutDeadline() { deadline_ = Clock::time_point::max(); }

  Shared& shared_;
  asio::steady_timer bell_;
  Clock::time_point deadline_ = Clock::time_point::max();
  std::shared_ptr<QueuedExchange> exchange_;
};

HttpResponse ParseFailure(const error_code& error) {
  if (error == http::error::body_limit) return ErrorResponse({413, "the body is larger than this server takes", "", "request_too_large"});
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    return ErrorResponse({431, "the header is larger than this server takes", "", "header_too_large"});
  return ErrorResponse({400, base::StrCat("this is not HTTP: ", error.message()), "", "bad_http"});
}

template <typename Stream>
class Session final : public Connection, public std::enable_shared_from_this<Session<Stream>> {
 public:
  Session(Shared& shared, Stream stream) : Connection(shared), stream_(std::move(stream)) {}

  void Start() {
    asio::co_spawn(shared_.io, [self = this->shared_from_this()] { return self->Run(); }, asio::detached);
  }
  void Close() override {
    error_code ignored;
    stream_.lowest_layer().close(ignored);
    Ring();
  }

 private:
  using Parser = http::request_parser<http::string_body>;

  asio::awaitable<void> Run() {
    error_code ignored;
    stream_.lowest_layer().set_option(Tcp::no_delay(true), ignored);
    bool fine = true;
    if constexpr (!std::is_same_v<Stream, Tcp::socket>) {
      Within(shared_.options.header_timeout);
      auto [error] = co_await stream_.async_handshake(asio::ssl::stream_base::server, kTuple);
      fine = !error;
    }
    while (fine && !shared_.draining) fine = co_await One();
    co_await Linger();
    Close();
  }

  // One request and its answer; false: the connection ends.
  asio::awaitable<bool> One() {
    Within(shared_.options.idle_timeout);
    while (buffer_.size() == 0) {
      if (!co_await More()) co_return false;
      if (shared_.draining) co_return false;
    }
    Parser parser;
    parser.header_limit(static_cast<std::uint32_t>(shared_.options.max_header_bytes));
    parser.body_limit(shared_.options.max_body_bytes);
    Within(shared_.options.header_timeout);
    bool whole = co_await Feed(parser, true);
    if (!whole) co_return false;
    HttpRequest request = HeadOf(parser);
    keep_alive_ = parser.get().keep_alive() && !shared_.draining;
    http10_ = request.http10;
    head_only_ = request.method == "HEAD";
    std::optional<HttpResponse> refused = Refuse(request);
    if (refused) {
      if (!parser.is_done()) keep_alive_ = false;
      co_return co_await Answer(std::move(*refused));
    }
    if (!parser.is_done()) {
      if (beast::iequals(parser.get()[http::field::expect], "100-continue") && !co_await Put("HTTP/1.1 100 Continue\r\n\r\n")) co_return false;
      Within(shared_.options.body_timeout);
      whole = co_await Feed(parser, false);
      if (!whole) co_return false;
    }
    request.body = std::move(parser.get().body());
    co_return co_await Serve(std::move(request));
  }

  static HttpRequest HeadOf(const Parser& parser) {
    const auto& message = parser.get();
    HttpRequest r;
    r.method = std::string(message.method_string());
    const std::string_view target(message.target().data(), message.target().size());
    const size_t question = target.find('?');
    r.path = std::string(target.substr(0, question));
    if (question != target.npos) r.query = std::string(target.substr(question + 1));
    auto field = [&](http::field name) { return std::string(message[name]); };
    r.authorization = field(http::field::authorization);
    r.origin = field(http::field::origin);
    r.host = field(http::field::host);
    r.request_id = std::string(message["x-request-id"]);
    r.http10 = message.version() < 11;
    return r;
  }

  // A page of another origin may not use this server on behalf of the browser's user, unless --cors names it.
  std::optional<HttpResponse> Refuse(const HttpRequest& r) {
    const std::string& allowed = shared_.options.cors_origin;
    if (!r.origin.empty() && allowed != "*" && r.origin != allowed && r.origin != "http://" + r.host && r.origin != "https://" + r.host)
      return ErrorResponse({403, base::StrCat("requests from the origin ", r.origin, " are not allowed (--cors)"), "", "origin_not_allowed"});
    return shared_.handler.gate(r);
  }

  // Gives the parser what has been read until the header, or all, is complete. Answers what is no request.
  asio::awaitable<bool> Feed(Parser& parser, bool header_only) {
    parser.eager(!header_only);
    for (;;) {
      error_code error;
      if (buffer_.size()) buffer_.consume(parser.put(buffer_.data(), error));
      if (error && error != http::error::need_more) {
        keep_alive_ = false;
        co_await Answer(ParseFailure(error));
        co_return false;
      }
      if (header_only ? parser.is_header_done() : parser.is_done()) co_return true;
      if (!co_await More()) co_return false;
    }
  }

  // Waits for more bytes in the buffer; false: there will be none.
  asio::awaitable<bool> More() {
    const size_t had = buffer_.size();
    StartRead();
    while (!closed_ && buffer_.size() == had) co_await Bell();
    co_return buffer_.size() > had;
  }

  // All reading is done here, one piece at a time, also while an answer is written: that is how a hang-up is seen.
  void StartRead() {
    if (reading_ || closed_) return;
    reading_ = true;
    stream_.async_read_some(buffer_.prepare(kReadPiece), [self = this->shared_from_this()](const error_code& error, size_t n) {
      self->reading_ = false;
      if (error || n == 0) {
        self->closed_ = true;
        if (self->exchange_) self->exchange_->SetGone();
      } else {
        self->buffer_.commit(n);
        if (self->exchange_ && self->buffer_.size() < kReadAhead) self->StartRead();
      }
      self->Ring();
    });
  }

  asio::awaitable<bool> Serve(HttpRequest request) {
    WithoutDeadline();
    std::weak_ptr<Session> weak = this->shared_from_this();
    exchange_ = std::make_shared<QueuedExchange>(std::move(request), shared_.options.max_waiting_bytes, [weak, &io = shared_.io] {
      asio::post(io, [weak] { if (auto self = weak.lock()) self->Ring(); });
    });
    shared_.handler.handle(exchange_);
    if (buffer_.size() < kReadAhead) StartRead();
    const bool fine = co_await Deliver();
    if (!fine || closed_) exchange_->SetGone();
    exchange_.reset();
    co_return fine && !closed_ && keep_alive_;
  }

  asio::awaitable<bool> Deliver() {
    for (bool ended = false; !ended;) {
      QueuedExchange::Output out = exchange_->Take();
      if (closed_ || out.overflow) co_return false;
      if (!out.head && out.bytes.empty() && !out.ended) {
        co_await Bell();
        continue;
      }
      ended = out.ended;
      std::string bytes;
      if (out.head) bytes = Wire(*out.head, out.streamed);
      const bool chunks = out.streamed && !http10_;
      if (!out.bytes.empty()) bytes += chunks ? WireChunk(out.bytes) : out.bytes;
      if (ended && chunks) bytes += kLastChunk;
      if (!co_await Put(std::move(bytes))) co_return false;
    }
    co_return true;
  }

  std::string Wire(const HttpResponse& response, bool streamed) {
    WireOptions wire;
    wire.chunked = streamed && !http10_;
    wire.until_close = streamed && http10_;
    if (wire.until_close || shared_.draining) keep_alive_ = false;
    wire.keep_alive = keep_alive_;
    wire.http10 = http10_;
    wire.head_only = head_only_;
    wire.cors_origin = shared_.options.cors_origin;
    return WireResponse(response, wire);
  }

  asio::awaitable<bool> Answer(HttpResponse response) {
    const bool fine = co_await Put(Wire(response, false));
    co_return fine && keep_alive_;
  }

  asio::awaitable<bool> Put(std::string bytes) {
    Within(shared_.options.write_timeout);
    auto [error, n] = co_await asio::async_write(stream_, asio::buffer(bytes), kTuple);
    WithoutDeadline();
    co_return !error;
  }

  // Closing a socket with unread bytes resets it, and the client may then lose the answer: read on for a moment.
  asio::awaitable<void> Linger() {
    if (closed_ || !stream_.lowest_layer().is_open()) co_return;
    error_code ignored;
    stream_.lowest_layer().shutdown(Tcp::socket::shutdown_send, ignored);
    Within(kLinger);
    for (size_t seen = 0; seen < (1u << 20);) {
      buffer_.consume(buffer_.size());
      if (!co_await More()) break;
      seen += buffer_.size();
    }
  }

  Stream stream_;
  beast::flat_buffer buffer_;
  bool reading_ = false, closed_ = false, keep_alive_ = true, http10_ = false, head_only_ = false;
};

}  // namespace

struct HttpServer::Impl {
  Shared shared;
  Tcp::acceptor acceptor{shared.io};
  asio::signal_set signals{shared.io};
  asio::steady_timer reaper{shared.io};
  std::optional<asio::ssl::context> tls;
  Clock::time_point cut_at = Clock::time_point::max();

  base::Status Listen();
  base::Status SetUpTls();
  asio::awaitable<void> Accept();
  asio::awaitable<void> Reap();
  void WaitForSignal();
  void Drain();
  void Cut();
};

base::Status HttpServer::Impl::Listen() {
  const HttpOptions& o = shared.options;
  auto fail = [&](const error_code& error) {
    return base::Fail(base::Error(base::ErrorCode::kIo, base::StrCat(o.host, ":", o.port, ": ", error.message())).Hint("another --host or --port"));
  };
  error_code error;
  asio::ip::address address = asio::ip::make_address(o.host == "localhost" ? "127.0.0.1" : o.host, error);
  if (error) return base::Fail(base::ErrorCode::kInvalidArgument, "--host ", o.host, ": an IP address or localhost is wanted");
  const Tcp::endpoint endpoint(address, static_cast<unsigned short>(o.port));
  if (acceptor.open(endpoint.protocol(), error)) return fail(error);
  acceptor.set_option(Tcp::acceptor::reuse_address(true), error);
  if (acceptor.bind(endpoint, error) || acceptor.listen(1024, error)) return fail(error);
  return {};
}

base::Status HttpServer::Impl::SetUpTls() {
  const HttpOptions& o = shared.options;
  if (o.tls_cert.empty() != o.tls_key.empty()) return base::Fail(base::ErrorCode::kInvalidArgument, "usage: --tls-cert and --tls-key go together");
  if (o.tls_cert.empty()) return {};
  tls.emplace(asio::ssl::context::tls_server);
  error_code error;
  tls->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_sslv2 | asio::ssl::context::no_sslv3 | asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1, error);
  if (tls->use_certificate_chain_file(o.tls_cert, error)) return base::Fail(base::ErrorCode::kBadFile, "--tls-cert ", o.tls_cert, ": ", error.message());
  if (tls->use_private_key_file(o.tls_key, asio::ssl::context::pem, error)) return base::Fail(base::ErrorCode::kBadFile, "--tls-key ", o.tls_key, ": ", error.message());
  return {};
}

asio::awaitable<void> HttpServer::Impl::Accept() {
  while (acceptor.is_open()) {
    auto [error, socket] = co_await acceptor.async_accept(kTuple);
    if (error == asio::error::operation_aborted || error == asio::error::bad_descriptor) co_return;
    if (error) {
      // Out of file descriptors, most likely: wait for connections to end.
      asio::steady_timer pause(shared.io, std::chrono::milliseconds(50));
      co_await pause.async_wait(kTuple);
      continue;
    }
    if (shared.connections.size() >= shared.options.max_connections) {
      static const std::string kFull = WireResponse(ErrorResponse({503, "too many connections", "", "too_many_connections"}), {.keep_alive = false});
      error_code ignored;
      socket.non_blocking(true, ignored);
      socket.write_some(asio::buffer(kFull), ignored);
      continue;
    }
    if (tls) std::make_shared<Session<asio::ssl::stream<Tcp::socket>>>(shared, asio::ssl::stream<Tcp::socket>(std::move(socket), *tls))->Start();
    else std::make_shared<Session<Tcp::socket>>(shared, std::move(socket))->Start();
  }
}

// Closes what is over time; ends the server once it has drained.
asio::awaitable<void> HttpServer::Impl::Reap() {
  for (;;) {
    reaper.expires_after(shared.draining ? kReaperPeriod / 10 : kReaperPeriod);
    co_await reaper.async_wait(kTuple);
    const Clock::time_point now = Clock::now();
    std::vector<Connection*> late;
    for (Connection* c : shared.connections)
      if (c->deadline() < now) late.push_back(c);
    for (Connection* c : late) c->Close();
    if (!shared.draining) continue;
    if (shared.connections.empty()) break;
    if (now > cut_at) Cut();
  }
  shared.io.stop();
}

void HttpServer::Impl::Drain() {
  if (shared.draining) return;
  shared.draining = true;
  error_code ignored;
  acceptor.close(ignored);
  cut_at = Clock::now() + shared.options.drain_timeout;
  if (shared.handler.draining) shared.handler.draining();
  std::vector<Connection*> idle;
  for (Connection* c : shared.connections)
    if (!c->busy()) idle.push_back(c);
  for (Connection* c : idle) c->Close();
  reaper.cancel();
}

void HttpServer::Impl::Cut() {
  if (shared.handler.cut) shared.handler.cut();
  std::vector<Connection*> all(shared.connections.begin(), shared.connections.end());
  for (Connection* c : all) c->Close();
}

void HttpServer::Impl::WaitForSignal() {
  signals.async_wait([this](const error_code& error, int) {
    if (error) return;
    if (shared.draining) {
      Cut();
      return;
    }
    base::LogInfo("stopping: answers under way may finish (a second signal ends them)");
    Drain();
    WaitForSignal();
  });
}

HttpServer::HttpServer() : impl_(std::make_unique<Impl>()) {}
HttpServer::~HttpServer() = default;

base::Result<std::unique_ptr<HttpServer>> HttpServer::Create(HttpOptions options, HttpHandler handler) {
  std::unique_ptr<HttpServer> server(new HttpServer);
  server->impl_->shared.options = std::move(options);
  server->impl_->shared.handler = std::move(handler);
  HB_RETURN_IF_ERROR(server->impl_->SetUpTls());
  HB_RETURN_IF_ERROR(server->impl_->Listen());
  return server;
}

int HttpServer::port() const {
  error_code error;
  return impl_->acceptor.local_endpoint(error).port();
}

int64_t HttpServer::connections() const { return impl_->shared.count; }

void HttpServer::Run() {
  Impl& impl = *impl_;
  if (impl.shared.options.handle_signals) {
    error_code ignored;
    impl.signals.add(SIGINT, ignored);
    impl.signals.add(SIGTERM, ignored);
    impl.WaitForSignal();
  }
  asio::co_spawn(impl.shared.io, impl.Accept(), asio::detached);
  asio::co_spawn(impl.shared.io, impl.Reap(), asio::detached);
  impl.shared.io.run();
}

void HttpServer::Stop() {
  asio::post(impl_->shared.io, [this] { impl_->Drain(); });
}

}  // namespace halfbyte::server
