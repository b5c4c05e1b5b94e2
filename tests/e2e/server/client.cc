#include "client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>

namespace halfbyte::server {

base::Json Answer::json() const { return base::Json::Parse(body).value_or(base::Json()); }

std::vector<base::Json> Answer::events() const {
  std::vector<base::Json> out;
  for (size_t at = 0; (at = body.find("data: ", at)) != body.npos;) {
    const size_t end = body.find("\n\n", at);
    const std::string data = body.substr(at + 6, end - at - 6);
    if (data != "[DONE]") out.push_back(base::Json::Parse(data).value_or(base::Json("not JSON: " + data)));
    at = end;
  }
  return out;
}

Client::Client(int port, int timeout_ms) {
  socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
  const timeval time{timeout_ms / 1000, timeout_ms % 1000 * 1000};
  setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) Close();
}

Client::~Client() { Close(); }

void Client::Close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

void Client::CloseWrites() { ::shutdown(socket_, SHUT_WR); }

bool Client::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

std::string Client::ReadSome() {
  if (!rest_.empty()) return std::exchange(rest_, {});
  char buffer[65536];
  const ssize_t n = ::recv(socket_, buffer, sizeof buffer, 0);
  return n > 0 ? std::string(buffer, static_cast<size_t>(n)) : std::string();
}

Answer Client::Read() {
  Answer answer;
  std::string data;
  auto more = [&] {
    const std::string piece = ReadSome();
    data += piece;
    return !piece.empty();
  };
  size_t head;
  while ((head = data.find("\r\n\r\n")) == data.npos)
    if (!more()) return answer;
  const int status = data.size() > 12 ? std::atoi(data.c_str() + 9) : 0;
  for (size_t at = data.find("\r\n") + 2; at < head;) {
    const size_t end = data.find("\r\n", at), colon = data.find(": ", at);
    std::string name = data.substr(at, colon - at);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    answer.headers[name] = data.substr(colon + 2, end - colon - 2);
    at = end + 2;
  }
  data.erase(0, head + 4);
  if (answer.headers["transfer-encoding"] == "chunked") {
    for (;;) {
      size_t line;
      while ((line = data.find("\r\n")) == data.npos)
        if (!more()) return answer;
      const size_t size = std::strtoul(data.c_str(), nullptr, 16);
      while (data.size() < line + 2 + size + 2)
        if (!more()) return answer;
      answer.body += data.substr(line + 2, size);
      data.erase(0, line + 2 + size + 2);
      if (size == 0) break;
    }
  } else {
    const size_t size = std::strtoul(answer.headers["content-length"].c_str(), nullptr, 10);
    while (data.size() < size)
      if (!more()) return answer;
    answer.body = data.substr(0, size);
    data.erase(0, size);
  }
  answer.status = status;
  rest_ = std::move(data);
  return answer;
}

std::string Client::Request(std::string_view method, std::string_view path, std::string_view body, std::string_view headers) {
  std::string out = base::StrCat(method, " ", path, " HTTP/1.1\r\nhost: localhost\r\n", headers);
  if (method == "POST" || !body.empty()) out += base::StrCat("content-type: application/json\r\ncontent-length: ", body.size(), "\r\n");
  return out + "\r\n" + std::string(body);
}

}  // namespace halfbyte::server
