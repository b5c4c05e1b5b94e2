#include "tls_client.h"

#include <openssl/ssl.h>

#include <memory>

#include "client.h"

namespace halfbyte::server {

TlsAnswer AskTls(int port, const std::filesystem::path& trusted, const std::string& request, int most) {
  TlsAnswer answer;
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  SSL_CTX_load_verify_locations(context.get(), trusted.c_str(), nullptr);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_security_level(context.get(), 0);  // or the client would refuse old versions before the server could
  if (most) {
    SSL_CTX_set_min_proto_version(context.get(), TLS1_VERSION);
    SSL_CTX_set_max_proto_version(context.get(), most);
  }
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), &SSL_free);
  Client tcp(port);
  SSL_set_fd(ssl.get(), tcp.socket());
  if (SSL_connect(ssl.get()) != 1) return answer;
  answer.connected = SSL_get_verify_result(ssl.get()) == X509_V_OK;
  answer.version = SSL_get_version(ssl.get());
  SSL_write(ssl.get(), request.data(), static_cast<int>(request.size()));
  char buffer[16384];
  for (int n; (n = SSL_read(ssl.get(), buffer, sizeof buffer)) > 0;) answer.bytes.append(buffer, static_cast<size_t>(n));
  return answer;
}

}  // namespace halfbyte::server
