// What goes wrong under a server's feet: reads that fail, memory that runs out, clients that leave.
#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "harness.h"

namespace halfbyte::server {
namespace {

// The value of a gauge or counter on /metrics.
double Metric(int port, const std::string& name) {
  const std::string text = Get(port, "/metrics").body;
  const size_t at = text.find("\nhalfbyte:" + name + "{");
  return at == text.npos ? 0 : std::atof(text.c_str() + text.find("} ", at) + 2);
}

// Every read of a reload fails once, one after the other; a stream that runs meanwhile sees nothing of it.
TEST(ServerFaults, AReadThatFailsInAReloadLeavesTheOldModel) {
  checkpoint::TemporaryFolder root;
  WriteChainModel(root, {{5, 6}, {6, kChainEnd}, {'l', 'l'}}, "a");
  WriteChainModel(root, {{5, 9}, {9, kChainEnd}, {'l', 'l'}}, "b");
  std::atomic<int> until_failure{-1}, failed{0};
  ServerSettings settings;
  settings.service.weight_root = root.path();
  settings.files.file.pread = [&](int fd, void* out, size_t bytes, off_t offset) -> ssize_t {
    if (until_failure >= 0 && until_failure-- == 0) {
      ++failed;
      errno = EIO;
      return -1;
    }
    return ::pread(fd, out, bytes, offset);
  };
  TestServer server(root.path() / "a", settings);
  const int port = server.port();
  auto answer = [&] { return Post(port, "/generate", R"({"input_ids": [5], "sampling_params": {"max_new_tokens": 4}, "return_logprob": true})").json(); };
  const std::string a = answer().Find("meta_info")->Find("output_token_logprobs")->Dump();
  Client running(port, 120000);
  running.Send(Client::Request("POST", "/v1/completions", R"({"prompt": "l", "max_tokens": 2000, "ignore_eos": true, "stream": true})"));
  int n = 0;
  for (; n < 1000; ++n) {
    const int before = failed;
    until_failure = n;
    const Answer update = Client(port, 120000).Ask("POST", "/update_weights_from_disk", R"({"model_path": "b"})");  // the one that succeeds waits for the stream
    until_failure = -1;
    if (failed == before) {  // a reload has fewer reads than that
      EXPECT_EQ(update.status, 200) << update.body;
      break;
    }
    ASSERT_EQ(update.status, 400) << n << update.body;
    EXPECT_FALSE(update.json().Find("success")->as_bool());
    EXPECT_NE(update.json().Find("message")->as_string().find("Input/output error"), std::string::npos) << update.body;
    const base::Json now = answer();
    EXPECT_EQ(now.Find("meta_info")->Find("output_token_logprobs")->Dump(), a) << n;
    EXPECT_EQ(Metric(port, "weight_version"), 0);
  }
  EXPECT_GT(n, 3);  // headers and data
  EXPECT_EQ(answer().Find("output_ids")->Dump(), "[9]");
  const Answer stream = running.Read();
  EXPECT_TRUE(stream.done());
  std::string text;
  for (const base::Json& e : stream.events()) text += e.Find("choices")->as_array().at(0).Find("text")->as_string();
  EXPECT_EQ(text, std::string(2000, 'l'));
}

// A cache for 20 blocks under ten requests that want 14 each: some wait, some are put back and computed again, all answers are those they have alone.
TEST(ServerFaults, OutOfKvBlocksCostsTimeNotResults) {
  checkpoint::TemporaryFolder folder;
  WriteChainModel(folder, TextChains());
  for (const char* device : {"reference", "cpu"}) {
    ServerSettings settings;
    settings.device = device;
    settings.engine.kv_cache_tokens = 320;
    TestServer server(folder.path(), settings);
    const int port = server.port();
    auto body = [](int seed) { return base::StrCat(R"({"text": "seed )", seed, R"(", "sampling_params": {"max_new_tokens": 210, "temperature": 6, "ignore_eos": true, "sampling_seed": )", seed, R"(}, "return_logprob": true})"); };
    auto result = [](const Answer& a) {
      EXPECT_EQ(a.status, 200) << a.body;
      return a.json().Find("output_ids")->Dump() + a.json().Find("meta_info")->Find("output_token_logprobs")->Dump();
    };
    std::vector<std::string> alone;
    for (int i = 0; i < 10; ++i) alone.push_back(result(Post(port, "/generate", body(i))));
    EXPECT_NE(alone[0], alone[1]);
    EXPECT_EQ(Metric(port, "num_preemptions"), 0);
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < 10; ++i) {
      clients.push_back(std::make_unique<Client>(port, 60000));
      clients.back()->Send(Client::Request("POST", "/generate", body(i)));
    }
    for (size_t i = 0; i < 10; ++i) EXPECT_EQ(result(clients[i]->Read()), alone[i]) << device << i;
    EXPECT_GT(Metric(port, "num_preemptions"), 0);
    // What can never fit is refused, and says why.
    std::string prompt(400, 'b');
    const Answer never = Post(port, "/v1/completions", base::StrCat(R"({"prompt": ")", prompt, R"(", "max_tokens": 5})"));
    EXPECT_EQ(never.status, 400) << never.body;
    EXPECT_NE(never.body.find("320"), std::string::npos) << never.body;
    EXPECT_TRUE(server.Idle());
    EXPECT_EQ(Get(port, "/health").status, 200);
  }
}

// A hundred clients leave in the middle of a stream, of a whole answer and of a prompt. Steps go on because short requests run all the time; when two more of them have
// ended after a hang-up was counted (one may have been under way), the sequence and its blocks are gone.
TEST(ServerFaults, AHundredHangUpsFreeTheirBlocksWithinAStep) {
  checkpoint::TemporaryFolder folder;
  WriteChainModel(folder, TextChains());
  ServerSettings settings;
  settings.engine.prefill_chunk = 64;
  TestServer server(folder.path(), settings);
  std::atomic<bool> done{false};
  std::thread company([&] {
    Client client(server.port());
    while (!done) EXPECT_EQ(client.Ask("POST", "/v1/completions", R"({"prompt": "l", "max_tokens": 14, "ignore_eos": true})").status, 200);  // one block
  });
  const std::string prompt(400, 'l');
  engine::Engine& engine = *server.context().engine;
  for (int i = 0; i < 100; ++i) {
    Client client(server.port());
    client.Send(Client::Request("POST", "/v1/completions", base::StrCat(R"({"prompt": ")", i, prompt, R"(", "max_tokens": 3000, "ignore_eos": true, "stream": )", i % 2 ? "true" : "false", "}")));
    if (i % 4 == 1) EXPECT_NE(client.ReadSome(), "");
    else while (engine.Metrics().kv_blocks_owned < 4) std::this_thread::yield();  // in its prompt, most likely
    if (i % 3) client.Close();
    else client.CloseWrites();
    while (Metric(server.port(), "client_hangups_total") < i + 1) std::this_thread::yield();
    const int64_t seen = engine.Metrics().executor.steps;
    while (engine.Metrics().executor.steps < seen + 2) std::this_thread::yield();
    const engine::EngineMetrics now = engine.Metrics();
    EXPECT_LE(now.running + now.waiting, 1) << i;
    EXPECT_LE(now.kv_blocks_owned, 1) << i;
  }
  done = true;
  company.join();
  EXPECT_TRUE(server.Idle());
  EXPECT_EQ(Metric(server.port(), "client_hangups_total"), 100);
}

}  // namespace
}  // namespace halfbyte::server
