// User case T18, and clients that misbehave.
#include <gtest/gtest.h>

#include <sys/socket.h>

#include <atomic>
#include <fstream>
#include <set>

#include "harness.h"

namespace halfbyte::server {
namespace {

constexpr const char* kEndless = R"({"prompt": "l", "max_tokens": 100000, "ignore_eos": true, "stream": true})";

class ServerHttp : public testing::Test {
 protected:
  ServerHttp() { WriteChainModel(folder_, TextChains()); }
  TestServer& Start(ServerSettings settings = {}) {
    server_ = std::make_unique<TestServer>(folder_.path(), std::move(settings));
    return *server_;
  }
  int port() const { return server_->port(); }
  void ExpectHealthy() { EXPECT_EQ(Get(port(), "/health").status, 200); }

  checkpoint::TemporaryFolder folder_;
  std::unique_ptr<TestServer> server_;
};

std::string ErrorParam(const Answer& a) {
  const base::Json json = a.json();
  const base::Json* error = json.Find("error");
  if (!error || !error->Find("message") || !error->Find("type") || !error->Find("code")) return "not the shape of an error: " + a.body;
  return error->Find("param")->is_null() ? "" : error->Find("param")->as_string();
}

TEST_F(ServerHttp, UsageChunkOnlyWhenAskedFor) {
  Start();
  auto events = [&](const char* more) {
    const Answer a = Post(port(), "/v1/chat/completions", base::StrCat(R"({"messages": [{"role": "user", "content": "b"}], "stream": true)", more, "}"));
    EXPECT_TRUE(a.done());
    return a.events();
  };
  const std::vector<base::Json> with = events(R"(, "stream_options": {"include_usage": true})");
  ASSERT_GT(with.size(), 2u);
  EXPECT_EQ(with.back().Find("choices")->as_array().size(), 0u);
  EXPECT_EQ(with.back().Find("usage")->Find("prompt_tokens")->as_int(), 1);
  EXPECT_EQ(with.back().Find("usage")->Find("completion_tokens")->as_int(), 7);
  EXPECT_EQ(with.back().Find("usage")->Find("total_tokens")->as_int(), 8);
  for (const char* none : {"", R"(, "stream_options": {})", R"(, "stream_options": null)", R"(, "stream_options": {"include_usage": false})"})
    for (const base::Json& e : events(none)) {
      EXPECT_FALSE(e.Find("usage"));
      EXPECT_EQ(e.Find("choices")->as_array().size(), 1u);
    }
}

TEST_F(ServerHttp, WrongRequestsAre400WithTheField) {
  Start();
  const std::string messages = R"("messages": [{"role": "user", "content": "b"}])";
  const std::pair<std::string, std::string> cases[] = {
      {"{:", ""}, {"[]", ""}, {"{}", "messages"}, {R"({"messages": {}})", "messages"}, {R"({"messages": []})", "messages"}, {R"({"messages": [{"role": "user", "content": 5}]})", "messages[0].content"},
      {R"({"messages": [{"role": "king", "content": "x"}]})", "messages[0].role"}, {R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})", "messages[0].content"},
      {"{" + messages + R"(, "temperature": "x"})", "temperature"}, {"{" + messages + R"(, "temperature": -1})", "temperature"}, {"{" + messages + R"(, "max_tokens": -1})", "max_tokens"},
      {"{" + messages + R"(, "n": 0})", "n"}, {"{" + messages + R"(, "logprobs": true, "top_logprobs": 1000})", "top_logprobs"}, {"{" + messages + R"(, "top_logprobs": 1})", "top_logprobs"},
      {"{" + messages + R"(, "stream": 1})", "stream"}, {"{" + messages + R"(, "stop": [1]})", "stop"}, {"{" + messages + R"(, "logit_bias": {"x": 1}})", "logit_bias"},
      {"{" + messages + R"(, "logit_bias": {"512": 1}})", "logit_bias"}, {"{" + messages + R"(, "tools": {}})", "tools"}, {"{" + messages + R"(, "tool_choice": "required"})", "tool_choice"},
      {"{" + messages + R"(, "response_format": {"type": "xml"}})", "response_format.type"}, {"{" + messages + R"(, "seed": 1.5})", "seed"}, {"{" + messages + R"(, "top_p": 2})", "top_p"},
      {"{\"messages\": [{\"role\": \"user\", \"content\": \"\xFF\"}]}", ""}, {"{" + messages + R"(, "tools": )" + std::string(3000, '[') + std::string(3000, ']') + "}", ""},
      {R"({"messages": [{"role": "user", "content": "refuse"}]})", "messages"}, {"{" + messages + R"(, "stop": ""})", "stop"}};
  for (const auto& [body, param] : cases) {
    const Answer a = Post(port(), "/v1/chat/completions", body);
    EXPECT_EQ(a.status, 400) << body.substr(0, 200) << "\n" << a.body;
    EXPECT_EQ(ErrorParam(a), param) << body.substr(0, 200) << "\n" << a.body;
  }
  EXPECT_NE(Post(port(), "/v1/chat/completions", R"({"messages": [{"role": "user", "content": "refuse"}]})").body.find("no such talk"), std::string::npos);
  EXPECT_EQ(Post(port(), "/v1/completions", R"({"prompt": [512]})").status, 400);
  EXPECT_EQ(Post(port(), "/v1/completions", R"({"prompt": []})").status, 400);
  EXPECT_EQ(Post(port(), "/v1/completions", R"({"prompt": "b", "model": "other"})").status, 404);
  EXPECT_EQ(Post(port(), "/v1/completions", base::StrCat(R"({"prompt": ")", std::string(5000, 'b'), "\"}")).status, 400);  // longer than the context
  EXPECT_EQ(Post(port(), "/v1/completions", R"({"prompt": "b", "max_tokens": 2, "no_such_field": {"x": 1}})").status, 200);
  EXPECT_EQ(ErrorParam(Post(port(), "/v1/completions", base::StrCat(R"({"n": 128, "prompt": ["b")", [] { std::string s; for (int i = 0; i < 20; ++i) s += ",\"b\""; return s; }(), "]}"))), "n");
  EXPECT_EQ(Post(port(), "/nope", "{}").status, 404);
  EXPECT_EQ(Get(port(), "/v1/completions").status, 405);
  ExpectHealthy();
}

TEST_F(ServerHttp, KeyOnEveryRoute) {
  ServerSettings settings;
  settings.service.api_keys = {"first-key", "second"};
  Start(settings);
  const std::pair<const char*, const char*> routes[] = {{"GET", "/v1/models"}, {"GET", "/metrics"}, {"GET", "/load_report"}, {"GET", "/get_model_info"}, {"POST", "/v1/completions"}, {"POST", "/v1/chat/completions"},
      {"POST", "/generate"}, {"POST", "/tokenize"}, {"POST", "/detokenize"}, {"POST", "/abort_request"}, {"POST", "/flush_cache"}, {"GET", "/flush_cache"}, {"POST", "/update_weights_from_disk"},
      {"POST", "/release_memory_occupation"}, {"POST", "/resume_memory_occupation"}, {"GET", "/no/such"}, {"POST", "/health"}, {"PUT", "/"}, {"GET", "//health"}, {"GET", "/health/"}, {"GET", "/health/../v1/models"}, {"OPTIONS", "/v1/models"}};
  for (const auto& [method, path] : routes)
    for (const char* key : {"", "authorization: Bearer wrong\r\n", "authorization: Bearer \r\n", "authorization: Bearer\r\n", "authorization: first-key\r\n", "authorization: Bearer first-key2\r\n", "authorization: Basic first-key\r\n"}) {
      const Answer a = Client(port()).Ask(method, path, "{}", key);
      EXPECT_EQ(a.status, 401) << method << " " << path << " " << key;
    }
  EXPECT_EQ(Get(port(), "/health").status, 200);
  EXPECT_EQ(Get(port(), "/").status, 200);
  EXPECT_EQ(Get(port(), "/v1/models", "authorization: Bearer second\r\n").status, 200);
  EXPECT_EQ(Get(port(), "/nope", "authorization: Bearer first-key\r\n").status, 404);
}

TEST_F(ServerHttp, LimitsOfSize) {
  ServerSettings settings;
  settings.http.max_body_bytes = 100000;
  Start(settings);
  Client client(port());
  client.Send("POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 100001\r\n\r\n");
  EXPECT_EQ(client.Read().status, 413);
  Client chunked(port());
  chunked.Send("POST /v1/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
  for (int i = 0; i < 30; ++i) chunked.Send("2000\r\n" + std::string(0x2000, ' ') + "\r\n");
  EXPECT_EQ(chunked.Read().status, 413);
  Client bomb(port());
  bomb.Send("GET /health HTTP/1.1\r\n");
  for (int i = 0; i < 400 && bomb.Send("x-header-" + std::to_string(i) + ": " + std::string(100, 'a') + "\r\n"); ++i) {}
  EXPECT_EQ(bomb.Read().status, 431);
  Client nonsense(port());
  nonsense.Send("\x16\x03\x01 what is this\r\n\r\n");
  EXPECT_EQ(nonsense.Read().status, 400);
  Client big(port());
  big.Send("GET /" + std::string(40000, 'a') + " HTTP/1.1\r\n\r\n");
  EXPECT_EQ(big.Read().status, 431);
  Client both(port());  // request smuggling: two lengths
  both.Send("POST /tokenize HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}");
  EXPECT_EQ(both.Read().status, 400);
  ExpectHealthy();
}

TEST_F(ServerHttp, KeepAliveAndPipelining) {
  Start();
  Client client(port());
  std::string all;
  for (const char* p : {"a", "b", "c"}) all += Client::Request("POST", "/v1/completions", base::StrCat(R"({"prompt": ")", p, R"(", "max_tokens": 1})"));
  all += Client::Request("GET", "/health");
  client.Send(all);
  const char* want[] = {"A", "ABC", "ABCD"};
  for (const char* text : want) EXPECT_EQ(client.Read().json().Find("choices")->as_array().at(0).Find("text")->as_string(), text);
  EXPECT_EQ(client.Read().status, 200);
  // Byte by byte.
  for (char c : Client::Request("POST", "/tokenize", R"({"prompt": "hi"})")) client.Send({&c, 1});
  EXPECT_EQ(client.Read().json().Find("tokens")->Dump(), "[104,105]");
  const Answer head = [&] { Client c(port()); c.Send("HEAD /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"); Answer a; a.body = c.ReadSome(); return a; }();
  EXPECT_TRUE(head.body.starts_with("HTTP/1.1 200")) << head.body;
  EXPECT_TRUE(head.body.ends_with("\r\n\r\n")) << head.body;
  Client old(port());
  old.Send("POST /v1/completions HTTP/1.0\r\ncontent-length: 49\r\n\r\n{\"prompt\": \"a\", \"max_tokens\": 9, \"stream\": true} ");
  std::string streamed;
  for (std::string piece; !(piece = old.ReadSome()).empty();) streamed += piece;
  EXPECT_NE(streamed.find("data: [DONE]"), std::string::npos) << streamed;
  EXPECT_EQ(streamed.find("chunked"), std::string::npos);
}

TEST_F(ServerHttp, OriginsAreRefusedUnlessAllowed) {
  Start();
  EXPECT_EQ(Post(port(), "/tokenize", R"({"prompt": "x"})", "origin: https://evil.example\r\n").status, 403);
  EXPECT_EQ(Post(port(), "/tokenize", R"({"prompt": "x"})", "origin: http://localhost\r\n").status, 200);
  server_.reset();
  ServerSettings settings;
  settings.http.cors_origin = "https://good.example";
  Start(settings);
  const Answer asked = Client(port()).Ask("OPTIONS", "/v1/chat/completions", "", "origin: https://good.example\r\n");
  EXPECT_EQ(asked.status, 204);
  EXPECT_EQ(asked.headers.at("access-control-allow-origin"), "https://good.example");
  EXPECT_EQ(Post(port(), "/tokenize", R"({"prompt": "x"})", "origin: https://evil.example\r\n").status, 403);
}

// A client that has gone, in whichever way, costs nothing after the next step.
TEST_F(ServerHttp, HangUpsFreeTheBlocks) {
  TestServer& server = Start();
  for (int round = 0; round < 20; ++round) {
    Client client(port());
    const bool stream = round % 2;
    client.Send(Client::Request("POST", "/v1/completions", stream ? kEndless : R"({"prompt": "l", "max_tokens": 100000, "ignore_eos": true})"));
    if (stream) { EXPECT_NE(client.ReadSome(), ""); }
    else while (server.context().engine->Metrics().running == 0) std::this_thread::yield();
    if (round % 4 < 2) client.Close();
    else client.CloseWrites();
    const auto start = std::chrono::steady_clock::now();
    ASSERT_TRUE(server.Idle()) << round;
    EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 1.0);
  }
  ExpectHealthy();
  EXPECT_NE(Get(port(), "/metrics").body.find("halfbyte:client_hangups_total{model_name=\"chain\"} 20"), std::string::npos);
}

TEST_F(ServerHttp, SlowClientsAreCut) {
  ServerSettings settings;
  settings.http.header_timeout = std::chrono::milliseconds(300);
  settings.http.body_timeout = std::chrono::milliseconds(300);
  settings.http.idle_timeout = std::chrono::milliseconds(600);
  settings.http.write_timeout = std::chrono::milliseconds(500);
  TestServer& server = Start(settings);
  Client header(port()), body(port()), idle(port()), reader(port());
  header.Send("GET /health HT");
  body.Send("POST /tokenize HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n{");
  int small = 4096;
  setsockopt(reader.socket(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  reader.Send(Client::Request("POST", "/v1/completions", R"({"prompt": "l", "max_tokens": 4000, "ignore_eos": true, "stream": true, "n": 8, "logprobs": 20})"));
  EXPECT_EQ(header.ReadSome(), "");
  EXPECT_EQ(body.ReadSome(), "");
  EXPECT_EQ(idle.ReadSome(), "");
  for (int i = 0; i < 1000 && server.http().connections() > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(server.http().connections(), 0);
  EXPECT_TRUE(server.Idle());
  ExpectHealthy();
}

TEST_F(ServerHttp, FullQueueIs429) {
  ServerSettings settings;
  settings.engine.max_batch = 1;
  settings.engine.max_queue = 2;
  TestServer& server = Start(settings);
  std::vector<std::unique_ptr<Client>> clients;
  int refused = 0;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<Client>(port()));
    clients.back()->Send(Client::Request("POST", "/v1/completions", kEndless));
    if (i == 0) clients.back()->ReadSome();
  }
  const Answer a = Post(port(), "/v1/completions", R"({"prompt": "b"})");
  refused += a.status == 429;
  EXPECT_EQ(refused, 1) << a.status << a.body;
  EXPECT_TRUE(a.headers.count("retry-after"));
  clients.clear();
  EXPECT_TRUE(server.Idle());
}

TEST_F(ServerHttp, RequestTimeout) {
  ServerSettings settings;
  settings.service.request_timeout = 0.2;
  settings.engine.max_batch = 1;
  TestServer& server = Start(settings);
  Client busy(port());
  busy.Send(Client::Request("POST", "/v1/completions", kEndless));
  EXPECT_EQ(Post(port(), "/v1/completions", R"({"prompt": "l", "max_tokens": 100000, "ignore_eos": true})").status, 504);
  const Answer streamed = busy.Read();
  EXPECT_TRUE(streamed.done());
  EXPECT_TRUE(streamed.events().back().Find("error")) << streamed.body.substr(streamed.body.size() - 300);
  EXPECT_TRUE(server.Idle());
}

TEST_F(ServerHttp, AbortRequest) {
  TestServer& server = Start();
  Client client(port());
  client.Send(Client::Request("POST", "/generate", R"({"input_ids": [108], "rid": "r1", "sampling_params": {"max_new_tokens": 4000, "ignore_eos": true}})"));
  while (server.context().engine->Metrics().running == 0) std::this_thread::yield();
  EXPECT_EQ(Post(port(), "/abort_request", R"({"rid": "r1"})").status, 200);
  EXPECT_EQ(client.Read().json().Find("meta_info")->Find("finish_reason")->Find("type")->as_string(), "abort");
  EXPECT_TRUE(server.Idle());
}

TEST_F(ServerHttp, StopDrains) {
  TestServer& server = Start();
  Client busy(port()), idle(port());
  EXPECT_EQ(idle.Ask("GET", "/health").status, 200);
  busy.Send(Client::Request("POST", "/v1/completions", R"({"prompt": "l", "max_tokens": 300, "ignore_eos": true, "stream": true})"));
  busy.ReadSome();
  const int port_was = port();
  server.http().Stop();
  EXPECT_EQ(idle.ReadSome(), "");  // closed at once
  std::string rest;
  for (std::string piece; !(piece = busy.ReadSome()).empty();) rest += piece;
  EXPECT_NE(rest.find("data: [DONE]"), std::string::npos);  // to the end
  EXPECT_EQ(Client(port_was).Ask("GET", "/health").status, 0);
}

// Many streams at once, each complete; then nothing is left over.
TEST_F(ServerHttp, FiveHundredStreams) {
  ServerSettings settings;
  settings.engine.max_batch = 64;
  settings.device = "cpu";
  TestServer& server = Start(settings);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 500; ++i) {
    clients.push_back(std::make_unique<Client>(port(), 120000));
    ASSERT_TRUE(clients.back()->Send(Client::Request("POST", "/v1/completions", base::StrCat(R"({"prompt": "b", "max_tokens": 20, "stream": true, "seed": )", i, "}"))));
  }
  int complete = 0;
  for (auto& c : clients) {
    const Answer a = c->Read();
    std::string text;
    for (const base::Json& e : a.events()) text += e.Find("choices")->as_array().at(0).Find("text")->as_string();
    complete += a.done() && text == "ABCDEFGHIJK";
  }
  EXPECT_EQ(complete, 500);
  clients.clear();
  EXPECT_TRUE(server.Idle());
  ExpectHealthy();
}

// Bad requests from several clients at once while good ones are answered.
TEST_F(ServerHttp, FloodOfNonsense) {
  Start();
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        if (t == 0) {
          good += Post(port(), "/v1/completions", R"({"prompt": "a", "max_tokens": 9})").status == 200;
        } else if (i % 3 == 0) {
          Post(port(), "/v1/chat/completions", std::string(static_cast<size_t>(i) * 100, '{'));
        } else if (i % 3 == 1) {
          Client(port()).Send("POST /v1/completions HTTP/1.1\r\ncontent-length: 1000\r\n\r\n{");
        } else {
          Client(port()).Send(std::string(static_cast<size_t>(i), '\0'));
        }
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(good, 50);
  ExpectHealthy();
}

// Every name of docs/server.md's table of metrics, after traffic of a known size; and nothing that the table lacks.
TEST_F(ServerHttp, MetricsByName) {
  ServerSettings settings;
  settings.service.api_keys = {"k"};
  TestServer& server = Start(settings);
  const char* key = "authorization: Bearer k\r\n";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Post(port(), "/v1/completions", base::StrCat(R"({"max_tokens": 5, "ignore_eos": true, "prompt": ")", std::string(32, 'l'), "\"}"), key).status, 200);
  EXPECT_EQ(Post(port(), "/v1/completions", "{}").status, 401);
  ASSERT_TRUE(server.Idle());
  const std::string text = "\n" + Get(port(), "/metrics", key).body;
  std::ifstream in(HALFBYTE_SOURCE_DIR "/docs/server.md");
  std::string docs((std::istreambuf_iterator<char>(in)), {});
  docs = docs.substr(docs.find("## Metrics"), docs.find("## Figures") - docs.find("## Metrics"));
  std::set<std::string> documented, there;
  for (size_t at = docs.find("| kind"); (at = docs.find('`', at)) != docs.npos;) {
    const size_t end = docs.find('`', at + 1);
    documented.insert(docs.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  for (const char* label : {"finished_reason", "status"}) documented.erase(label);
  constexpr std::string_view kType = "# TYPE halfbyte:";
  for (size_t at = 0; (at = text.find(kType, at)) != text.npos; at += kType.size()) there.insert(text.substr(at + kType.size(), text.find(' ', at + kType.size()) - at - kType.size()));
  EXPECT_EQ(there, documented);
  for (const char* line : {"prompt_tokens_total{model_name=\"chain\"} 96", "generation_tokens_total{model_name=\"chain\"} 15", "time_to_first_token_seconds_count{model_name=\"chain\"} 3",
                           "inter_token_latency_seconds_count{model_name=\"chain\"} 12", "e2e_request_latency_seconds_count{model_name=\"chain\"} 3", "prefix_cache_hits_total{model_name=\"chain\"} 32",
                           "request_success_total{finished_reason=\"length\",model_name=\"chain\"} 3", "http_responses_total{status=\"401\"} 1", "num_requests_running{model_name=\"chain\"} 0"})
    EXPECT_NE(text.find(base::StrCat("\nhalfbyte:", line, "\n")), text.npos) << line << text;
}

TEST_F(ServerHttp, PageModelsAndTokens) {
  Start();
  const Answer page = Get(port(), "/");
  EXPECT_EQ(page.headers.at("content-type"), "text/html; charset=utf-8");
  EXPECT_NE(page.body.find("</html>"), std::string::npos);
  EXPECT_EQ(page.body.find("http://"), std::string::npos);   // nothing from elsewhere
  EXPECT_EQ(page.body.find("https://"), std::string::npos);
  EXPECT_EQ(Get(port(), "/v1/models").json().Find("data")->as_array().at(0).Find("id")->as_string(), "chain");
  EXPECT_EQ(Get(port(), "/load_report").status, 200);
  EXPECT_EQ(Get(port(), "/v1/models/%63hain").json().Find("id")->as_string(), "chain");
  EXPECT_EQ(Get(port(), "/v1/models/nobody%").status, 404);
  EXPECT_EQ(Get(port(), "/v1/models/").status, 404);
  EXPECT_EQ(Post(port(), "/detokenize", R"({"tokens": [310, 302]})").json().Find("prompt")->as_string(), "ABCDEF");
  EXPECT_NE(Get(port(), "/metrics").body.find("halfbyte:num_requests_running{model_name=\"chain\"} 0"), std::string::npos);
}

}  // namespace
}  // namespace halfbyte::server
