// One request through TLS, by OpenSSL, for the tests.
#pragma once

#include <filesystem>
#include <string>

namespace halfbyte::server {

struct TlsAnswer {
  bool connected = false;  // the handshake succeeded and the certificate is the one trusted
  std::string version;     // "TLSv1.3"
  std::string bytes;       // all that came until the server closed
};

// Sends `request` (with "connection: close") and reads to the end. `most`: a highest protocol version (TLS1_1_VERSION ...), 0: any.
TlsAnswer AskTls(int port, const std::filesystem::path& trusted, const std::string& request, int most = 0);

}  // namespace halfbyte::server
