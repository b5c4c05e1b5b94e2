#include "server/http_server.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>

#include "base/log.h"
#include "platform/file_reader.h"
#include "server/api_error.h"
#include "server/http_message.h"
#include "server/http_session.h"

namespace halfbyte::server {
namespace {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;
using Clock = Connection::Clock;
using boost::system::error_code;
constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
constexpr auto kReaperPeriod = std::chrono::milliseconds(500);  // how exactly time-outs are kept

}  // namespace

struct HttpServer::Impl {
  Connections connections;
  asio::io_context io{1};  // after them: its end destroys the sessions that are left, which sign off there
  Tcp::acceptor acceptor{io};
  asio::signal_set signals{io};
  asio::steady_timer reaper{io};
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

namespace {

asio::ip::address AddressOf(const std::string& host, error_code& error) { return asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, error); }

base::Result<std::optional<asio::ssl::context>> MakeTls(const HttpOptions& o) {
  constexpr uint64_t kMostBytes = 16 << 20;  // a chain has some kB
  if (o.tls_cert.empty() != o.tls_key.empty()) return base::Fail(base::ErrorCode::kInvalidArgument, "--tls-cert and --tls-key go together");
  if (o.tls_cert.empty()) return std::nullopt;
  HB_ASSIGN_OR_RETURN_AT(const std::string cert, platform::ReadWholeFile(o.tls_cert, kMostBytes), "--tls-cert");
  HB_ASSIGN_OR_RETURN_AT(const std::string key, platform::ReadWholeFile(o.tls_key, kMostBytes), "--tls-key");
  std::optional<asio::ssl::context> tls(std::in_place, asio::ssl::context::tls_server);
  error_code error;
  tls->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_sslv2 | asio::ssl::context::no_sslv3 | asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1, error);
  if (tls->use_certificate_chain(asio::buffer(cert), error)) return base::Fail(base::ErrorCode::kBadFile, "--tls-cert ", o.tls_cert, ": ", error.message());
  if (tls->use_private_key(asio::buffer(key), asio::ssl::context::pem, error)) return base::Fail(base::ErrorCode::kBadFile, "--tls-key ", o.tls_key, ": ", error.message());
  return tls;
}

}  // namespace

base::Status CheckTls(const HttpOptions& options) {
  HB_RETURN_IF_ERROR(MakeTls(options));
  return {};
}

base::Status CheckHost(const std::string& host) {
  error_code error;
  AddressOf(host, error);
  if (error) return base::Fail(base::ErrorCode::kInvalidArgument, "\"", host, "\": an IP address or localhost is wanted");
  return {};
}

base::Status HttpServer::Impl::Listen() {
  const HttpOptions& o = connections.options;
  auto fail = [&](const error_code& error) {
    return base::Fail(base::Error(base::ErrorCode::kIo, base::StrCat(o.host, ":", o.port, ": ", error.message())).Hint("another --host or --port"));
  };
  error_code error;
  HB_RETURN_IF_ERROR(CheckHost(o.host));
  const Tcp::endpoint endpoint(AddressOf(o.host, error), static_cast<unsigned short>(o.port));
  if (acceptor.open(endpoint.protocol(), error)) return fail(error);
  acceptor.set_option(Tcp::acceptor::reuse_address(true), error);
  if (acceptor.bind(endpoint, error) || acceptor.listen(1024, error)) return fail(error);
  return {};
}

base::Status HttpServer::Impl::SetUpTls() {
  HB_ASSIGN_OR_RETURN(tls, MakeTls(connections.options));
  return {};
}

asio::awaitable<void> HttpServer::Impl::Accept() {
  error_code none;
  const bool v6 = acceptor.local_endpoint(none).protocol() == Tcp::v6();
  while (acceptor.is_open()) {
    auto [error, socket] = co_await acceptor.async_accept(kTuple);
    if (error == asio::error::operation_aborted || error == asio::error::bad_descriptor) co_return;
    if (error) {
      // Out of file descriptors, most likely: wait for connections to end.
      asio::steady_timer pause(io, std::chrono::milliseconds(50));
      co_await pause.async_wait(kTuple);
      continue;
    }
    if (connections.open.size() >= connections.options.max_connections) {
      static const std::string kFull = WireResponse(ErrorResponse({503, "too many connections", "", "too_many_connections"}), {.keep_alive = false});
      error_code ignored;
      socket.non_blocking(true, ignored);
      socket.write_some(asio::buffer(kFull), ignored);
      continue;
    }
    const int descriptor = socket.release(error);
    if (!error) StartSession(connections, io, descriptor, v6, tls ? &*tls : nullptr);
  }
}

// Closes what is over time; ends the server once it has drained.
asio::awaitable<void> HttpServer::Impl::Reap() {
  for (;;) {
    reaper.expires_after(connections.draining ? kReaperPeriod / 10 : kReaperPeriod);
    co_await reaper.async_wait(kTuple);
    const Clock::time_point now = Clock::now();
    std::vector<Connection*> late;
    for (Connection* c : connections.open)
      if (c->deadline() < now) late.push_back(c);
    for (Connection* c : late) c->Close();
    if (!connections.draining) continue;
    if (connections.open.empty()) break;
    if (now > cut_at) Cut();
  }
  io.stop();
}

void HttpServer::Impl::Drain() {
  if (connections.draining) return;
  connections.draining = true;
  error_code ignored;
  acceptor.close(ignored);
  cut_at = Clock::now() + connections.options.drain_timeout;
  if (connections.handler.draining) connections.handler.draining();
  std::vector<Connection*> idle;
  for (Connection* c : connections.open)
    if (!c->busy()) idle.push_back(c);
  for (Connection* c : idle) c->Close();
  reaper.cancel();
}

void HttpServer::Impl::Cut() {
  if (connections.handler.cut) connections.handler.cut();
  std::vector<Connection*> all(connections.open.begin(), connections.open.end());
  for (Connection* c : all) c->Close();
}

void HttpServer::Impl::WaitForSignal() {
  signals.async_wait([this](const error_code& error, int) {
    if (error) return;
    if (connections.draining) {
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
  server->impl_->connections.options = std::move(options);
  server->impl_->connections.handler = std::move(handler);
  HB_RETURN_IF_ERROR(server->impl_->SetUpTls());
  HB_RETURN_IF_ERROR(server->impl_->Listen());
  return server;
}

int HttpServer::port() const {
  error_code error;
  return impl_->acceptor.local_endpoint(error).port();
}

int64_t HttpServer::connections() const { return impl_->connections.count; }

void HttpServer::Run() {
  Impl& impl = *impl_;
  if (impl.connections.options.handle_signals) {
    error_code ignored;
    impl.signals.add(SIGINT, ignored);
    impl.signals.add(SIGTERM, ignored);
    impl.WaitForSignal();
  }
  asio::co_spawn(impl.io, impl.Accept(), asio::detached);
  asio::co_spawn(impl.io, impl.Reap(), asio::detached);
  impl.io.run();
}

void HttpServer::Stop() {
  asio::post(impl_->io, [this] { impl_->Drain(); });
}

}  // namespace halfbyte::server
