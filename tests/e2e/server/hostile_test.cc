// Load with bounded counts: clients that flood, stall, overflow and break off, all at once, beside good ones. Afterwards nothing is left over: no connection, no descriptor,
// no sequence; under AddressSanitizer no byte.
#include <gtest/gtest.h>

#include <sys/socket.h>

#include <atomic>
#include <random>

#include "harness.h"

namespace halfbyte::server {
namespace {

constexpr const char* kGood = R"({"prompt": "b", "max_tokens": 20, "stream": true})";

int64_t Descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator{});
}

class ServerHostile : public testing::Test {
 protected:
  ServerHostile() {
    WriteChainModel(folder_, TextChains());
    ServerSettings settings;
    settings.device = "cpu";
    settings.engine.max_batch = 64;
    settings.http.max_body_bytes = 1 << 20;
    settings.http.header_timeout = settings.http.body_timeout = settings.http.idle_timeout = std::chrono::milliseconds(1000);
    settings.http.write_timeout = std::chrono::milliseconds(1000);
    server_ = std::make_unique<TestServer>(folder_.path(), std::move(settings));
    Post(port(), "/v1/completions", kGood);
    WaitUntilAllHaveLeft();
    descriptors_ = Descriptors();
  }
  int port() const { return server_->port(); }
  void WaitUntilAllHaveLeft() {
    for (int i = 0; i < 1000 && server_->http().connections() > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(server_->http().connections(), 0);
  }

  // After a client's attack: the server answers, and nothing of it is left.
  void ExpectNothingLeft() {
    EXPECT_EQ(Get(port(), "/health").status, 200);
    const std::string text = Post(port(), "/v1/completions", R"({"prompt": "b", "max_tokens": 20})").json().Find("choices")->as_array().at(0).Find("text")->as_string();
    EXPECT_EQ(text, "ABCDEFGHIJK");
    EXPECT_TRUE(server_->Idle());
    WaitUntilAllHaveLeft();
    EXPECT_EQ(Descriptors(), descriptors_);
  }

  checkpoint::TemporaryFolder folder_;
  std::unique_ptr<TestServer> server_;
  int64_t descriptors_ = 0;
};

void BadJson(int port, uint32_t seed, int count) {
  const std::string good = R"({"messages": [{"role": "user", "content": "b"}], "max_tokens": 2, "temperature": 0.5, "stop": ["x"], "logit_bias": {"5": 1}, "tools": [{"type": "function", "function": {"name": "f"}}]})";
  std::mt19937 random(seed);
  Client client(port);
  for (int i = 0; i < count; ++i) {
    std::string bad = good;
    for (uint32_t n = 1 + random() % 4; n > 0; --n) {
      const size_t at = random() % bad.size();
      if (random() % 3 == 0) bad.erase(at, 1 + random() % 8);
      else bad[at] = static_cast<char>(random());
      if (bad.empty()) bad = "x";
    }
    const int status = client.Ask("POST", "/v1/chat/completions", bad).status;
    EXPECT_TRUE(status == 400 || status == 200 || status == 404) << status << bad;  // some are still good; "model" cannot come from nothing
  }
}

void Oversized(int port) {
  Client client(port);
  client.Send("POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999\r\n\r\n" + std::string(10000, 'x'));
  EXPECT_EQ(client.Read().status, 413);
  Client chunks(port);
  chunks.Send("POST /v1/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
  for (int i = 0; i < 40 && chunks.Send("8000\r\n" + std::string(0x8000, ' ') + "\r\n"); ++i) {}
  EXPECT_EQ(chunks.Read().status, 413);
}

void HeaderBomb(int port) {
  Client client(port);
  client.Send("GET /health HTTP/1.1\r\n");
  for (int i = 0; i < 300 && client.Send(base::StrCat("x-", i, ": ", std::string(100, 'a'), "\r\n")); ++i) {}
  EXPECT_EQ(client.Read().status, 431);
}

void NestedArrays(int port, const char* path) {
  const std::string deep = std::string(3000, '[') + std::string(3000, ']');
  for (const std::string& body : {deep, R"({"prompt": )" + deep + "}", R"({"messages": )" + deep + "}", R"({"prompt": "b", "logit_bias": )" + deep + "}", "{\"input_ids\": " + deep + "}"})
    EXPECT_EQ(Post(port, path, body).status, 400) << path;
}

TEST_F(ServerHostile, BadJson) {
  BadJson(port(), 1, 500);
  ExpectNothingLeft();
}

TEST_F(ServerHostile, OversizedBodiesAndHeaderBombs) {
  for (int i = 0; i < 20; ++i) Oversized(port());
  for (int i = 0; i < 20; ++i) HeaderBomb(port());
  ExpectNothingLeft();
}

TEST_F(ServerHostile, ThreeThousandNestedArraysOnEveryRoute) {
  for (const char* path : {"/v1/completions", "/v1/chat/completions", "/generate", "/tokenize", "/detokenize", "/abort_request", "/update_weights_from_disk", "/release_memory_occupation"}) NestedArrays(port(), path);
  ExpectNothingLeft();
}

// Connected and silent, cut off in a header, in a body, half closed: each is ended by a time-out, while others are served.
TEST_F(ServerHostile, HalfOpenSockets) {
  {
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < 300; ++i) {
      clients.push_back(std::make_unique<Client>(port()));
      if (i % 5 == 1) clients.back()->Send("POST /v1/completions HT");
      if (i % 5 == 2) clients.back()->Send("POST /v1/completions HTTP/1.1\r\ncontent-length: 100\r\n\r\n{");
      if (i % 5 == 3) clients.back()->CloseWrites();
      if (i % 5 == 4) {
        clients.back()->Send(Client::Request("POST", "/v1/completions", kGood));
        clients.back()->CloseWrites();
      }
    }
    EXPECT_TRUE(Post(port(), "/v1/completions", kGood).done());
    for (size_t i = 0; i < clients.size(); ++i)
      if (i % 5) while (!clients[i]->ReadSome().empty()) {}  // until the server closes
  }
  ExpectNothingLeft();
}

// Eight clients that ask for more than the sockets' buffers hold and read nothing, while good ones are served.
TEST_F(ServerHostile, SlowReaders) {
  {
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < 8; ++i) {
      clients.push_back(std::make_unique<Client>(port()));
      const int small = 4096;
      setsockopt(clients.back()->socket(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
      clients.back()->Send(Client::Request("POST", "/v1/completions", R"({"prompt": "l", "max_tokens": 2000, "ignore_eos": true, "stream": true, "logprobs": 20, "n": 4})"));
    }
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(Client(port(), 60000).Ask("POST", "/v1/completions", kGood).done());
    for (int i = 0; i < 6000 && server_->http().connections() > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(server_->http().connections(), 0);
  }
  ExpectNothingLeft();
}

// A thousand requests in one go: answered in order where they are read, forgotten where the client leaves.
TEST_F(ServerHostile, Pipelining) {
  std::string all;
  for (int i = 0; i < 1000; ++i) all += i % 10 ? Client::Request("GET", "/health") : Client::Request("POST", "/v1/completions", R"({"prompt": "b", "max_tokens": 3})");
  {
    Client reader(port());
    std::thread sender([&] { reader.Send(all); });
    for (int i = 0; i < 1000; ++i) {
      const Answer a = reader.Read();
      ASSERT_EQ(a.status, 200) << i;
      EXPECT_EQ(a.body.find("ABCDEFG") != a.body.npos, i % 10 == 0) << i;
    }
    sender.join();
    for (int i = 0; i < 20; ++i) {
      Client leaver(port());
      leaver.Send(std::string_view(all).substr(0, 20000));
    }
  }
  ExpectNothingLeft();
}

TEST_F(ServerHostile, EverythingAtOnceBesideGoodStreams) {
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) good += Post(port(), "/v1/completions", kGood).done();
    });
  threads.emplace_back([&] { BadJson(port(), 2, 200); });
  threads.emplace_back([&] { for (int i = 0; i < 10; ++i) Oversized(port()); });
  threads.emplace_back([&] { for (int i = 0; i < 10; ++i) HeaderBomb(port()); });
  threads.emplace_back([&] { NestedArrays(port(), "/v1/chat/completions"); });
  threads.emplace_back([&] {
    for (int i = 0; i < 50; ++i) {  // gone in the middle of a stream
      Client client(port());
      client.Send(Client::Request("POST", "/v1/completions", R"({"prompt": "l", "max_tokens": 3000, "ignore_eos": true, "stream": true})"));
      client.ReadSome();
    }
  });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(good, 200);
  ExpectNothingLeft();
}

}  // namespace
}  // namespace halfbyte::server
