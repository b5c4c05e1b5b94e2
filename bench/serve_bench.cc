// Load client for `halfbyte serve` over loopback; prints one JSON object. tools/serve_goals.py runs it for every row of the server's goals.
//   serve_bench load    --port 8000 --streams 16 --requests 64 --prompt-tokens 32 --max-tokens 128 [--key K --temperature 0]
//   serve_bench ttft    --port 8000 --streams 32 --requests 200 --prompt-tokens 32     a prompt's first token while `streams` answers are decoded
//   serve_bench hangups --port 8000 --requests 100                                     clients that leave in the middle of a stream
// Token-id prompts, so that it works with --skip-tokenizer-init too. One thread polls all sockets: the client shares the cores with the server, and its
// CPU time is printed because it is part of what is measured.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
double Since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "serve_bench: %s\n", why.c_str());
  std::exit(1);
}

struct Options {
  std::string mode, key, temperature = "0";
  int port = 8000, streams = 16, requests = 64, prompt = 32, max_tokens = 128;
};

struct Stream {
  int socket = -1;
  Clock::time_point sent, first, last;
  bool begun = false, done = false;
  int64_t events = 0;
  std::string tail = {};  // the end of what came: a marker may be cut
};

int Connect(const Options& o) {
  const int s = ::socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(static_cast<uint16_t>(o.port));
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(s, reinterpret_cast<sockaddr*>(&a), sizeof a) != 0) Die("cannot connect to port " + std::to_string(o.port));
  return s;
}

void SendAll(int socket, const std::string& bytes) {
  if (send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size())) Die("a request could not be sent");
}

std::string KeyHeader(const Options& o) { return o.key.empty() ? "" : "authorization: Bearer " + o.key + "\r\n"; }

// No two numbers give the same prompt, so that the prefix cache helps nobody.
void Ask(Stream& s, const Options& o, int number, int64_t max_tokens) {
  std::string ids = std::to_string(3 + number % 211) + "," + std::to_string(3 + number / 211 % 211);
  for (int i = 2; i < o.prompt; ++i) ids += "," + std::to_string(3 + (number * 131 + i * 17) % 200);
  const std::string body = "{\"prompt\":[" + ids + "],\"max_tokens\":" + std::to_string(max_tokens) + ",\"temperature\":" + o.temperature + ",\"seed\":" + std::to_string(number) + ",\"ignore_eos\":true,\"stream\":true}";
  s = {.socket = s.socket, .sent = Clock::now(), .first = {}, .last = {}};
  SendAll(s.socket, "POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n" + KeyHeader(o) + "content-length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
}

// Counts "data: {" in what came; an answer ends with the last chunk. Returns how many events that were.
int64_t Take(Stream& s, std::string_view bytes) {
  s.tail.append(bytes);
  if (s.tail.starts_with("HTTP/1.1 ") && !s.tail.starts_with("HTTP/1.1 200")) Die(s.tail);
  size_t at = 0, seen = 0;
  int64_t events = 0;
  while ((at = s.tail.find("data: {", at)) != s.tail.npos) {
    ++events;
    at += 7;
    seen = at;
  }
  if (s.tail.find("{\"error\"") != s.tail.npos) Die(s.tail);
  if (events) {
    s.last = Clock::now();
    if (!s.begun) s.first = s.last;
    s.begun = true;
    s.events += events;
  }
  s.done = s.tail.find("data: [DONE]") != s.tail.npos && s.tail.ends_with("0\r\n\r\n");
  const size_t keep = s.tail.size() > 64 ? s.tail.size() - 64 : 0;
  s.tail.erase(0, std::max(seen, keep));
  return events;
}

// Reads from all streams until `enough`; `on_events` hears of each piece.
void Loop(std::vector<Stream>& streams, const std::function<bool()>& enough, const std::function<void(Stream&, int64_t events)>& on_events) {
  std::vector<pollfd> polls(streams.size());
  std::vector<char> buffer(1 << 18);
  while (!enough()) {
    for (size_t i = 0; i < streams.size(); ++i) polls[i] = {streams[i].done ? -1 : streams[i].socket, POLLIN, 0};
    if (poll(polls.data(), polls.size(), 60000) <= 0) Die("nothing came for a minute");
    for (size_t i = 0; i < streams.size(); ++i) {
      if (!polls[i].revents || streams[i].done) continue;
      const ssize_t n = recv(streams[i].socket, buffer.data(), buffer.size(), 0);
      if (n <= 0) Die("a stream ended early");
      const int64_t events = Take(streams[i], {buffer.data(), static_cast<size_t>(n)});
      on_events(streams[i], events);
    }
  }
}

double Quantile(std::vector<double>& v, double q) {
  if (v.empty()) Die("nothing was measured");
  std::sort(v.begin(), v.end());
  return v[std::min(v.size() - 1, static_cast<size_t>(q * static_cast<double>(v.size())))];
}

double CpuSeconds() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

std::vector<Stream> Open(const Options& o, int n) {
  std::vector<Stream> streams(static_cast<size_t>(n));
  for (Stream& s : streams) s.socket = Connect(o);
  return streams;
}

// Decode throughput is that of the first round while all its streams decode: from the last stream's first token to the first stream's end, counted in events (a token
// whose text is held back, half a character say, comes with the next one: the figure is a little low, never high).
void Load(const Options& o) {
  std::vector<Stream> streams = Open(o, std::min(o.streams, o.requests));
  std::vector<double> ttft;
  Clock::time_point all_decode, first_end;
  int64_t decoded = 0;
  int next = 0, complete = 0;
  const Clock::time_point start = Clock::now();
  for (Stream& s : streams) Ask(s, o, next++, o.max_tokens);
  Loop(streams, [&] { return complete == o.requests; }, [&](Stream& s, int64_t events) {
    const bool counting = ttft.size() >= streams.size() && complete == 0;
    if (counting) decoded += events;
    if (events && s.events == events) {
      ttft.push_back(std::chrono::duration<double>(s.first - s.sent).count());
      if (ttft.size() == streams.size()) all_decode = Clock::now();
    }
    if (!s.done) return;
    if (++complete == 1) first_end = Clock::now();
    if (next < o.requests) Ask(s, o, next++, o.max_tokens);
  });
  const double seconds = Since(start), decode = std::chrono::duration<double>(first_end - all_decode).count();
  std::printf("{\"requests\": %d, \"streams\": %d, \"seconds\": %.3f, \"tokens_per_second\": %.1f, \"decode_tokens_per_second\": %.1f, \"ttft_p50\": %.6f, \"ttft_p99\": %.6f, \"client_cpu_seconds\": %.3f}\n", complete,
              o.streams, seconds, static_cast<double>(complete) * o.max_tokens / seconds, decode > 0 ? static_cast<double>(decoded) / decode : 0.0, Quantile(ttft, 0.5), Quantile(ttft, 0.99), CpuSeconds());
}

// Keeps `streams` answers going (each is asked for anew when it ends), and sends prompts one after the other; the first ones, alone, tell the prefill.
void TimeToFirstToken(const Options& o) {
  int number = 0;
  std::vector<Stream> probe = Open(o, 1);
  auto measure = [&](std::vector<Stream>& all, std::vector<double>& out) {
    Ask(all[0], o, ++number, 1);
    Loop(all, [&] { return all[0].done; }, [&](Stream& s, int64_t) {
      if (&s != &all[0] && s.done) Ask(s, o, ++number, o.max_tokens);
    });
    out.push_back(std::chrono::duration<double>(all[0].first - all[0].sent).count());
  };
  std::vector<double> alone, busy, gaps;
  for (int i = 0; i < 50; ++i) measure(probe, alone);
  std::vector<Stream> all = Open(o, o.streams);
  all.insert(all.begin(), probe[0]);
  for (size_t i = 1; i < all.size(); ++i) Ask(all[i], o, ++number, o.max_tokens);
  // The decode step: what one stream's tokens are apart, over two seconds without a prompt.
  int64_t tokens = 0;
  Clock::time_point start{};
  Loop(all, [&] { return start != Clock::time_point{} && Since(start) > 2; }, [&](Stream& s, int64_t events) {
    if (start == Clock::time_point{} && std::all_of(all.begin() + 1, all.end(), [](const Stream& x) { return x.begun; })) start = Clock::now();
    else if (start != Clock::time_point{}) tokens += events;
    if (s.done && &s != &all[0]) Ask(s, o, ++number, o.max_tokens);
  });
  const double step = Since(start) * o.streams / static_cast<double>(tokens);
  for (int i = 0; i < o.requests; ++i) measure(all, busy);
  std::printf("{\"streams\": %d, \"probes\": %d, \"decode_step\": %.6f, \"ttft_alone_p50\": %.6f, \"ttft_p50\": %.6f, \"ttft_p99\": %.6f, \"client_cpu_seconds\": %.3f}\n", o.streams, o.requests, step, Quantile(alone, 0.5),
              Quantile(busy, 0.5), Quantile(busy, 0.99), CpuSeconds());
}

// The value of a gauge or counter on /metrics.
double Metric(int socket, const Options& o, const std::string& name) {
  SendAll(socket, "GET /metrics HTTP/1.1\r\nhost: x\r\n" + KeyHeader(o) + "\r\n");
  std::string text;
  char buffer[65536];
  size_t head = 0, length = 0;
  while (!length || text.size() < head + length) {
    const ssize_t n = recv(socket, buffer, sizeof buffer, 0);
    if (n <= 0) Die("/metrics did not answer");
    text.append(buffer, static_cast<size_t>(n));
    const size_t end = text.find("\r\n\r\n"), at = text.find("content-length: ");
    if (end != text.npos && at != text.npos) head = end + 4, length = std::strtoul(text.c_str() + at + 16, nullptr, 10);
  }
  const size_t at = text.find("\nhalfbyte:" + name + "{");
  return at == text.npos ? 0 : std::atof(text.c_str() + text.find("} ", at) + 2);
}

void HangUps(const Options& o) {
  const int metrics = Connect(o);
  const double before = Metric(metrics, o, "client_hangups_total");
  std::vector<double> back;
  for (int i = 0; i < o.requests; ++i) {
    std::vector<Stream> one = Open(o, 1);
    Ask(one[0], o, i, o.max_tokens);
    Loop(one, [&] { return one[0].begun; }, [](Stream&, int64_t) {});
    if (one[0].done) Die("an answer ended before its client could leave: more --max-tokens");
    const Clock::time_point left = Clock::now();
    close(one[0].socket);
    while (Metric(metrics, o, "kv_blocks_owned") > 0)
      if (Since(left) > 10) Die("blocks are not free ten seconds after a hang-up");
    back.push_back(Since(left));
  }
  std::printf("{\"hangups\": %d, \"seen\": %.0f, \"blocks_back_p50\": %.6f, \"blocks_back_max\": %.6f}\n", o.requests, Metric(metrics, o, "client_hangups_total") - before, Quantile(back, 0.5), Quantile(back, 1.0));
}

Options Read(int argc, char** argv) {
  Options o;
  o.mode = argc > 1 ? argv[1] : "";
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    bool known = true;
    if (flag == "--key") o.key = argv[i + 1];
    else if (flag == "--temperature") o.temperature = argv[i + 1];
    else known = false;
    for (auto [name, value] : {std::pair<const char*, int*>{"--port", &o.port}, {"--streams", &o.streams}, {"--requests", &o.requests}, {"--prompt-tokens", &o.prompt}, {"--max-tokens", &o.max_tokens}})
      if (flag == name) known = true, *value = std::atoi(argv[i + 1]);
    if (!known) Die("there is no flag " + flag);
  }
  return o;
}

}  // namespace

int main(int argc, char** argv) {
  const Options o = Read(argc, argv);
  if (o.mode == "load") Load(o);
  else if (o.mode == "ttft") TimeToFirstToken(o);
  else if (o.mode == "hangups") HangUps(o);
  else Die("serve_bench load|ttft|hangups [--port --streams --requests --prompt-tokens --max-tokens --temperature --key]");
  return 0;
}
