// `halfbyte serve` as users start it: signals, keys, addresses, TLS, memory, the same answers as `generate`.
#include <gtest/gtest.h>

#include <openssl/ssl.h>
#include <signal.h>

#include <fstream>

#include "client.h"
#include "e2e/program.h"
#include "serve_program.h"
#include "tls_client.h"

namespace halfbyte::server {
namespace {

std::string Stream(int max_tokens) { return Client::Request("POST", "/v1/completions", base::StrCat(R"({"prompt": "Olga has", "max_tokens": )", max_tokens, R"(, "temperature": 0, "ignore_eos": true, "stream": true})")); }

std::string Text(const Answer& streamed) {
  EXPECT_TRUE(streamed.done());
  std::string text;
  for (const base::Json& e : streamed.events()) text += e.Find("choices")->as_array().at(0).Find("text")->as_string();
  return text;
}

TEST(ServeProgram, SigtermUnderLoadDrains) {
  ServeProgram program;
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<std::string> seen;
  for (int i = 0; i < 40; ++i) {  // more than --max-batch: some wait
    clients.push_back(std::make_unique<Client>(program.port(), 60000));
    clients.back()->Send(Stream(300));
  }
  for (int i = 0; i < 8; ++i) seen.push_back(clients[static_cast<size_t>(i)]->ReadSome());
  Client idle(program.port());
  EXPECT_EQ(idle.Ask("GET", "/health").status, 200);
  program.Signal(SIGTERM);
  EXPECT_EQ(idle.ReadSome(), "");                                            // idle connections end at once
  EXPECT_EQ(Client(program.port()).Ask("GET", "/health").status, 0);         // nobody comes in
  seen.resize(clients.size());
  for (size_t i = 0; i < clients.size(); ++i) {
    for (std::string piece; !(piece = clients[i]->ReadSome()).empty();) seen[i] += piece;
    EXPECT_NE(seen[i].find("data: [DONE]"), std::string::npos) << i << seen[i].substr(0, 300);
    EXPECT_NE(seen[i].find(R"("finish_reason":"length")"), std::string::npos) << i;
  }
  EXPECT_EQ(program.Wait(), 0) << program.log();
}

TEST(ServeProgram, ASecondSignalEndsAtOnce) {
  ServeProgram program({"--max-batch", "1"});
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<Client>(program.port(), 60000));
    clients.back()->Send(Stream(1900));
  }
  EXPECT_NE(clients[0]->ReadSome(), "");
  program.Signal(SIGTERM);
  program.Signal(SIGINT);
  EXPECT_EQ(program.Wait(20), 0) << program.log();
}

// The addresses that a port of this machine listens on, as /proc writes them.
std::vector<std::string> ListensOn(int port) {
  std::vector<std::string> out;
  char want[8];
  std::snprintf(want, sizeof want, ":%04X", port);
  std::ifstream in("/proc/net/tcp");
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string number, local, remote, state;
    fields >> number >> local >> remote >> state;
    if (state == "0A" && local.ends_with(want)) out.push_back(local.substr(0, local.find(':')));
  }
  return out;
}

TEST(ServeProgram, ListensOnLoopbackUnlessTold) {
  const ServeProgram program, open({"--host", "0.0.0.0"});
  EXPECT_EQ(ListensOn(program.port()), std::vector<std::string>{"0100007F"});
  EXPECT_EQ(ListensOn(open.port()), std::vector<std::string>{"00000000"});
  EXPECT_NE(open.log().find("without --api-key-file"), std::string::npos);
}

TEST(ServeProgram, KeysFromAFileAndCors) {
  checkpoint::TemporaryFolder folder;
  const auto keys = folder.Write("keys", "# for the web team\r\n  key-one  \r\n\nkey-two");
  const ServeProgram program({"--api-key-file", keys.string(), "--cors", "https://chat.example"});
  auto status = [&](const char* header) { return Get(program.port(), "/v1/models", header).status; };
  EXPECT_EQ(status(""), 401);
  EXPECT_EQ(status("authorization: Bearer # for the web team\r\n"), 401);
  EXPECT_EQ(status("authorization: Bearer key-one\r\n"), 200);
  EXPECT_EQ(status("authorization: bearer key-two\r\n"), 200);
  EXPECT_EQ(Get(program.port(), "/health").status, 200);
  EXPECT_EQ(status("authorization: Bearer key-one\r\norigin: https://evil.example\r\n"), 403);
  const Answer allowed = Get(program.port(), "/v1/models", "authorization: Bearer key-one\r\norigin: https://chat.example\r\n");
  EXPECT_EQ(allowed.status, 200);
  EXPECT_EQ(allowed.headers.at("access-control-allow-origin"), "https://chat.example");
  const Answer preflight = Client(program.port()).Ask("OPTIONS", "/v1/chat/completions", "", "origin: https://chat.example\r\naccess-control-request-method: POST\r\n");
  EXPECT_EQ(preflight.status, 204);
  EXPECT_NE(preflight.headers.at("access-control-allow-headers").find("authorization"), std::string::npos);
  const auto empty = folder.Write("empty", "# nothing\n");
  EXPECT_NE(e2e::FailureOf({"serve", "--port", "0", "--api-key-file", empty.string()}).find("holds no key"), std::string::npos);
}

class ServeTls : public testing::Test {
 protected:
  ServeTls() {
    const std::string make = base::StrCat("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout ", key().string(), " -out ", certificate().string(), " 2>/dev/null");
    EXPECT_EQ(std::system(make.c_str()), 0) << make;
  }
  std::filesystem::path key() const { return folder_.path() / "key.pem"; }
  std::filesystem::path certificate() const { return folder_.path() / "cert.pem"; }
  checkpoint::TemporaryFolder folder_;
};

TEST_F(ServeTls, AnswersStreamsAndOldVersions) {
  ServeProgram program({"--tls-cert", certificate().string(), "--tls-key", key().string()});
  const std::string get = "GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
  const TlsAnswer health = AskTls(program.port(), certificate(), get);
  EXPECT_TRUE(health.connected);
  EXPECT_EQ(health.version, "TLSv1.3");
  EXPECT_TRUE(health.bytes.starts_with("HTTP/1.1 200")) << health.bytes;
  EXPECT_EQ(AskTls(program.port(), certificate(), get, TLS1_2_VERSION).version, "TLSv1.2");
  EXPECT_FALSE(AskTls(program.port(), certificate(), get, TLS1_1_VERSION).connected);
  std::string stream = Stream(100);
  stream.insert(stream.find("\r\n") + 2, "connection: close\r\n");
  EXPECT_NE(AskTls(program.port(), certificate(), stream).bytes.find("data: [DONE]"), std::string::npos);
  EXPECT_EQ(Client(program.port()).Ask("GET", "/health").status, 0);  // plain HTTP is none
  for (int i = 0; i < 20; ++i) Client(program.port()).Send("\x16\x03\x01");  // a handshake that breaks off
  EXPECT_TRUE(AskTls(program.port(), certificate(), get).bytes.starts_with("HTTP/1.1 200"));
  program.Signal(SIGTERM);
  EXPECT_EQ(program.Wait(), 0) << program.log();
}

TEST_F(ServeTls, FilesThatAreNoneAreNamed) {
  const auto junk = folder_.Write("junk.pem", "no certificate");
  EXPECT_NE(e2e::FailureOf({"serve", "--port", "0", "--tls-cert", junk.string(), "--tls-key", key().string()}).find("--tls-cert"), std::string::npos);
  EXPECT_NE(e2e::FailureOf({"serve", "--port", "0", "--tls-cert", certificate().string(), "--tls-key", junk.string()}).find("--tls-key"), std::string::npos);
}

TEST(ServeProgram, ReleasedMemoryGoesBackToTheSystem) {
  ServeProgram program;
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 32; ++i) {  // fills a part of the cache
    clients.push_back(std::make_unique<Client>(program.port(), 60000));
    clients.back()->Send(Stream(300));
  }
  std::string first;
  for (auto& c : clients) first = Text(c->Read());
  clients.clear();
  const int64_t full = program.ResidentBytes();
  EXPECT_EQ(Post(program.port(), "/release_memory_occupation", R"({"tags": ["kv_cache"]})").status, 200);
  const int64_t without_cache = program.ResidentBytes();
  EXPECT_EQ(Post(program.port(), "/release_memory_occupation", R"({"tags": ["weights"]})").status, 200);
  const int64_t bare = program.ResidentBytes();
  std::printf("resident: %.1f MB, without the cache %.1f, without the weights %.1f\n", static_cast<double>(full) / 1e6, static_cast<double>(without_cache) / 1e6, static_cast<double>(bare) / 1e6);
  EXPECT_LT(without_cache, full - (16 << 20));  // 32 sequences of 300 tokens at 3 KiB a token: 31 MB
  EXPECT_LT(bare, without_cache - (8 << 20));   // the demo model: 13 M parameters
  EXPECT_EQ(Post(program.port(), "/resume_memory_occupation", "{}").status, 200);
  Client again(program.port());
  again.Send(Stream(300));
  EXPECT_EQ(Text(again.Read()), first);
  EXPECT_GT(program.ResidentBytes(), bare + (8 << 20));
}

TEST(ServeProgram, IdleCpuIsUnderOnePercent) {
  const ServeProgram program;
  EXPECT_EQ(Get(program.port(), "/health").status, 200);
  const double before = program.CpuSeconds();
  std::this_thread::sleep_for(std::chrono::seconds(4));
  EXPECT_LE(program.CpuSeconds() - before, 0.04);
}

// A set of conversations, each over HTTP in company of the others and by `generate` alone: the same text.
TEST(ServeProgram, ConversationsAreThoseOfGenerate) {
  const std::vector<std::string> questions = {"Olga saves $23 every week for 13 weeks. How many dollars has she?", "Tom has 5 apples and buys 7 more. How many apples has Tom?", "Hello", "What is 12 times 3?",
                                              "A box holds 24 eggs. How many eggs are in 6 boxes?", "Caf\xC3\xA9 \xF0\x9F\x98\x80"};
  const ServeProgram program;
  EXPECT_NE(Get(program.port(), "/load_report").body.find("experts"), std::string::npos);
  std::vector<std::unique_ptr<Client>> clients;
  auto ask = [&](const std::string& question, bool stream) {
    base::Json message = base::Json::MakeObject(), body = base::Json::MakeObject();
    message.Set("role", "user");
    message.Set("content", question);
    body.Set("messages", base::Json::Array{message});
    body.Set("max_tokens", 48);
    body.Set("temperature", 0);
    body.Set("stream", stream);
    clients.push_back(std::make_unique<Client>(program.port(), 60000));
    clients.back()->Send(Client::Request("POST", "/v1/chat/completions", body.Dump()));
  };
  for (const std::string& q : questions) {
    ask(q, false);
    ask(q, true);
  }
  for (size_t i = 0; i < questions.size(); ++i) {
    const base::Json want = e2e::RunJson({"generate", "-q", "--json", "--chat", "--prompt", questions[i], "--max-tokens", "48"});
    const base::Json whole = clients[2 * i]->Read().json();
    const base::Json& choice = whole.Find("choices")->as_array().at(0);
    EXPECT_EQ(choice.Find("message")->Find("content")->as_string(), want.Find("text")->as_string()) << questions[i];
    EXPECT_EQ(choice.Find("finish_reason")->as_string(), want.Find("finish_reason")->as_string());
    EXPECT_EQ(whole.Find("usage")->Find("prompt_tokens")->as_int(), static_cast<int64_t>(want.Find("prompt_tokens")->as_array().size()));
    std::string streamed;
    for (const base::Json& e : clients[2 * i + 1]->Read().events())
      if (const base::Json* d = e.Find("choices")->as_array().at(0).Find("delta")->Find("content")) streamed += d->as_string();
    EXPECT_EQ(streamed, want.Find("text")->as_string()) << questions[i];
  }
}

// packaging/halfbyte.service names only flags that the program has, and lets a drain end before systemd kills.
TEST(ServeProgram, SystemdUnit) {
  const std::string unit = e2e::ReadFile(HALFBYTE_SOURCE_DIR "/packaging/halfbyte.service");
  ASSERT_NE(unit, "");
  const std::string help = e2e::RunProgram({"serve", "--help"}).out;
  int flags = 0;
  for (const std::string& line : e2e::Lines(unit)) {
    if (line.starts_with("TimeoutStopSec=")) { EXPECT_GT(std::atoi(line.c_str() + 15), 30); }
    if (!line.starts_with("ExecStart=")) continue;
    std::istringstream words(line);
    for (std::string word; words >> word;)
      if (word.starts_with("--")) {
        ++flags;
        EXPECT_NE(help.find(word + " "), std::string::npos) << word;
      }
  }
  EXPECT_GE(flags, 2);
  if (std::system("command -v systemd-analyze >/dev/null") != 0) return;  // only asks for the form; the program need not be installed
  checkpoint::TemporaryFolder folder;
  std::string there = unit;
  const size_t at = there.find("/usr/bin/halfbyte");
  ASSERT_NE(at, there.npos);
  there.replace(at, 17, HALFBYTE_PROGRAM);
  const auto file = folder.Write("halfbyte.service", there);
  EXPECT_EQ(std::system(base::StrCat("systemd-analyze verify --man=no ", file.string(), " >", (folder.path() / "out").string(), " 2>&1").c_str()), 0) << e2e::ReadFile(folder.path() / "out");
}

}  // namespace
}  // namespace halfbyte::server
