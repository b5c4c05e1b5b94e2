#include "server/http_session.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "server/api_error.h"
#include "server/http_exchange.h"
#include "server/http_message.h"

namespace halfbyte::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;
using boost::system::error_code;
constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
constexpr size_t kReadAhead = 64 << 10;     // bytes of later requests that are read while one is answered
constexpr size_t kReadPiece = 16 << 10;
constexpr auto kLinger = std::chrono::seconds(2);  // for an early answer to arrive although the request was not read to its end

HttpResponse ParseFailure(const error_code& error) {
  if (error == http::error::body_limit) return ErrorResponse({413, "the body is larger than this server takes", "", "request_too_large"});
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    return ErrorResponse({431, "the header is larger than this server takes", "", "header_too_large"});
  return ErrorResponse({400, base::StrCat("this is not HTTP: ", error.message()), "", "bad_http"});
}

template <typename Stream>
class Session final : public Connection, public std::enable_shared_from_this<Session<Stream>> {
 public:
  Session(Connections& connections, asio::io_context& io, Stream stream) : Connection(connections), io_(io), bell_(io, Clock::time_point::max()), stream_(std::move(stream)) {}

  void Start() {
    asio::co_spawn(io_, [self = this->shared_from_this()] { return self->Run(); }, asio::detached);
  }
  void Close() override {
    error_code ignored;
    stream_.lowest_layer().close(ignored);
    Ring();
  }
  bool busy() const override { return exchange_ != nullptr; }

 private:
  using Parser = http::request_parser<http::string_body>;

  void Ring() { bell_.cancel(); }
  asio::awaitable<void> Bell() { co_await bell_.async_wait(kTuple); }

  asio::awaitable<void> Run() {
    error_code ignored;
    stream_.lowest_layer().set_option(Tcp::no_delay(true), ignored);
    bool fine = true;
    if constexpr (!std::is_same_v<Stream, Tcp::socket>) {
      Within(connections_.options.header_timeout);
      auto [error] = co_await stream_.async_handshake(asio::ssl::stream_base::server, kTuple);
      fine = !error;
    }
    while (fine && !connections_.draining) fine = co_await One();
    co_await Linger();
    Close();
  }

  // One request and its answer; false: the connection ends.
  asio::awaitable<bool> One() {
    Within(connections_.options.idle_timeout);
    while (buffer_.size() == 0) {
      if (!co_await More()) co_return false;
      if (connections_.draining) co_return false;
    }
    Parser parser;
    parser.header_limit(static_cast<std::uint32_t>(connections_.options.max_header_bytes));
    parser.body_limit(connections_.options.max_body_bytes);
    Within(connections_.options.header_timeout);
    bool whole = co_await Feed(parser, true);
    if (!whole) co_return false;
    HttpRequest request = HeadOf(parser);
    keep_alive_ = parser.get().keep_alive() && !connections_.draining;
    http10_ = request.http10;
    head_only_ = request.method == "HEAD";
    std::optional<HttpResponse> refused = Refuse(request);
    if (refused) {
      if (!parser.is_done()) keep_alive_ = false;
      co_return co_await Answer(std::move(*refused));
    }
    if (!parser.is_done()) {
      if (beast::iequals(parser.get()[http::field::expect], "100-continue") && !co_await Put("HTTP/1.1 100 Continue\r\n\r\n")) co_return false;
      Within(connections_.options.body_timeout);
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
    const std::string& allowed = connections_.options.cors_origin;
    if (!r.origin.empty() && allowed != "*" && r.origin != allowed && r.origin != "http://" + r.host && r.origin != "https://" + r.host)
      return ErrorResponse({403, base::StrCat("requests from the origin ", r.origin, " are not allowed (--cors)"), "", "origin_not_allowed"});
    return connections_.handler.gate(r);
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
    exchange_ = std::make_shared<QueuedExchange>(std::move(request), connections_.options.max_waiting_bytes, [weak, &io = io_] {
      asio::post(io, [weak] { if (auto self = weak.lock()) self->Ring(); });
    });
    connections_.handler.handle(exchange_);
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
    if (wire.until_close || connections_.draining) keep_alive_ = false;
    wire.keep_alive = keep_alive_;
    wire.http10 = http10_;
    wire.head_only = head_only_;
    wire.cors_origin = connections_.options.cors_origin;
    return WireResponse(response, wire);
  }

  asio::awaitable<bool> Answer(HttpResponse response) {
    const bool fine = co_await Put(Wire(response, false));
    co_return fine && keep_alive_;
  }

  asio::awaitable<bool> Put(std::string bytes) {
    Within(connections_.options.write_timeout);
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

  asio::io_context& io_;
  asio::steady_timer bell_;
  Stream stream_;
  std::shared_ptr<QueuedExchange> exchange_;  // while a request is answered
  beast::flat_buffer buffer_;
  bool reading_ = false, closed_ = false, keep_alive_ = true, http10_ = false, head_only_ = false;
};

}  // namespace

void StartSession(Connections& connections, asio::io_context& io, int descriptor, bool v6, asio::ssl::context* tls) {
  Tcp::socket socket(io);
  error_code error;
  socket.assign(v6 ? Tcp::v6() : Tcp::v4(), descriptor, error);
  if (error) return;
  if (tls) std::make_shared<Session<asio::ssl::stream<Tcp::socket>>>(connections, io, asio::ssl::stream<Tcp::socket>(std::move(socket), *tls))->Start();
  else std::make_shared<Session<Tcp::socket>>(connections, io, std::move(socket))->Start();
}

}  // namespace halfbyte::server
