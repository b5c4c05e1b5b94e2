// Load client for `halfbyte serve`: N streams at once over loopback, tokens/s, time to first token, its own CPU time.
//   serve_bench --port 8000 --streams 16 --requests 64 --prompt-tokens 32 --max-tokens 128 [--key K]
// Token-id prompts, so that it works with --skip-tokenizer-init too. One thread polls all sockets: the client shares the cores with the server, and its
// CPU time is printed because it is part of what is measured.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  int port = 8000, streams = 16, requests = 64, prompt = 32, max_tokens = 128;
  std::string key;
};

struct Stream {
  int socket = -1;
  Clock::time_point sent;
  bool first = false, done = false;
  int64_t events = 0;
  std::string tail = {};  // the end of what came: a marker may be cut
};

int Connect(int port) {
  const int s = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(static_cast<uint16_t>(port));
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(s, reinterpret_cast<sockaddr*>(&a), sizeof a) != 0) {
    std::fprintf(stderr, "cannot connect to port %d\n", port);
    std::exit(1);
  }
  return s;
}

void Ask(Stream& s, const Options& o, int number) {
  std::string ids;
  for (int i = 0; i < o.prompt; ++i) ids += (i ? "," : "") + std::to_string(3 + (number * 131 + i * 17) % 200);
  const std::string body = "{\"prompt\":[" + ids + "],\"max_tokens\":" + std::to_string(o.max_tokens) + ",\"temperature\":0,\"ignore_eos\":true,\"stream\":true}";
  const std::string request = "POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n" + (o.key.empty() ? "" : "authorization: Bearer " + o.key + "\r\n") +
                              "content-length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  s = {s.socket, Clock::now()};
  if (send(s.socket, request.data(), request.size(), 0) != static_cast<ssize_t>(request.size())) std::exit(1);
}

// Counts "data: {" in what came; an answer ends with the last chunk.
void Take(Stream& s, std::string_view bytes, std::vector<double>& first_token) {
  s.tail.append(bytes);
  if (s.tail.starts_with("HTTP/1.1 ") && !s.tail.starts_with("HTTP/1.1 200")) {
    std::fprintf(stderr, "%s\n", s.tail.c_str());
    std::exit(1);
  }
  size_t at = 0, seen = 0;
  while ((at = s.tail.find("data: {", at)) != s.tail.npos) {
    ++s.events;
    at += 7;
    seen = at;
  }
  if (s.events && !s.first) {
    s.first = true;
    first_token.push_back(std::chrono::duration<double>(Clock::now() - s.sent).count());
  }
  s.done = s.tail.find("data: [DONE]") != s.tail.npos && s.tail.ends_with("0\r\n\r\n");
  const size_t keep = s.tail.size() > 64 ? s.tail.size() - 64 : 0;
  s.tail.erase(0, std::max(seen, keep));
}

double CpuSeconds() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

Options Read(int argc, char** argv) {
  Options o;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--key") o.key = argv[i + 1];
    for (auto [name, value] : {std::pair<const char*, int*>{"--port", &o.port}, {"--streams", &o.streams}, {"--requests", &o.requests}, {"--prompt-tokens", &o.prompt}, {"--max-tokens", &o.max_tokens}})
      if (flag == name) *value = std::atoi(argv[i + 1]);
  }
  return o;
}

}  // namespace

int main(int argc, char** argv) {
  const Options o = Read(argc, argv);
  std::vector<Stream> streams(static_cast<size_t>(std::min(o.streams, o.requests)));
  std::vector<double> first_token;
  int next = 0, complete = 0;
  for (Stream& s : streams) s.socket = Connect(o.port);
  const Clock::time_point start = Clock::now();
  for (Stream& s : streams) Ask(s, o, next++);
  std::vector<pollfd> polls(streams.size());
  std::vector<char> buffer(1 << 18);
  while (complete < o.requests) {
    for (size_t i = 0; i < streams.size(); ++i) polls[i] = {streams[i].socket, static_cast<short>(streams[i].done ? 0 : POLLIN), 0};
    if (poll(polls.data(), polls.size(), 60000) <= 0) { std::fprintf(stderr, "nothing came for a minute\n"); return 1; }
    for (size_t i = 0; i < streams.size(); ++i) {
      if (!polls[i].revents || streams[i].done) continue;
      const ssize_t n = recv(streams[i].socket, buffer.data(), buffer.size(), 0);
      if (n <= 0) { std::fprintf(stderr, "a stream ended early\n"); return 1; }
      Take(streams[i], {buffer.data(), static_cast<size_t>(n)}, first_token);
      if (!streams[i].done) continue;
      ++complete;
      if (next < o.requests) Ask(streams[i], o, next++);
    }
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::sort(first_token.begin(), first_token.end());
  auto quantile = [&](double q) { return first_token[std::min(first_token.size() - 1, static_cast<size_t>(q * static_cast<double>(first_token.size())))]; };
  std::printf("{\"requests\": %d, \"streams\": %d, \"seconds\": %.3f, \"tokens_per_second\": %.1f, \"ttft_p50\": %.4f, \"ttft_p99\": %.4f, \"client_cpu_seconds\": %.3f}\n", complete, o.streams, seconds,
              static_cast<double>(complete) * o.max_tokens / seconds, quantile(0.5), quantile(0.99), CpuSeconds());
  return 0;
}
