// User case T14: other weights into a running server, and memory given back.
#include <gtest/gtest.h>

#include "harness.h"
#include "platform/memory.h"

namespace halfbyte::server {
namespace {

class ServerControl : public testing::TestWithParam<const char*> {
 protected:
  ServerControl() {
    WriteChainModel(root_, {{5, 6}, {6, kChainEnd}, {'l', 'l'}}, "a");
    WriteChainModel(root_, {{5, 9}, {9, kChainEnd}, {'l', 'l'}}, "b");
    ServerSettings settings;
    settings.device = GetParam();
    settings.service.weight_root = root_.path();
    server_ = std::make_unique<TestServer>(root_.path() / "a", settings);
  }
  int port() const { return server_->port(); }
  // Tokens and logprobs of the answer to token 5 (behind a prompt of two blocks, which the prefix cache keeps), as JSON text.
  static std::string Ask(int port) {
    std::string ids;
    for (int i = 0; i < 40; ++i) ids += "5,";
    const Answer a = Post(port, "/generate", base::StrCat(R"({"input_ids": [)", ids, R"(5], "sampling_params": {"max_new_tokens": 4, "temperature": 0}, "return_logprob": true, "top_logprobs_num": 5})"));
    EXPECT_EQ(a.status, 200) << a.body;
    const base::Json json = a.json();
    return json.Find("output_ids")->Dump() + json.Find("meta_info")->Find("output_token_logprobs")->Dump() + json.Find("meta_info")->Find("output_top_logprobs")->Dump();
  }
  std::string Ask() { return Ask(port()); }
  Answer Update(const std::string& path) { return Post(port(), "/update_weights_from_disk", base::StrCat(R"({"model_path": ")", path, "\"}")); }
  int64_t Version() { return Get(port(), "/v1/models").json().Find("data")->as_array().at(0).Find("weight_version")->as_int(); }
  std::string Root() { return Get(port(), "/v1/models").json().Find("data")->as_array().at(0).Find("root")->as_string(); }

  checkpoint::TemporaryFolder root_;
  std::unique_ptr<TestServer> server_;
};

TEST_P(ServerControl, ReloadEqualsAFreshStart) {
  const std::string a = Ask();
  EXPECT_TRUE(a.starts_with("[6]")) << a;
  EXPECT_EQ(Update("a").status, 200);
  EXPECT_EQ(Ask(), a);
  std::string b;
  {
    ServerSettings settings;
    settings.device = GetParam();
    TestServer fresh(root_.path() / "b", settings);
    b = Ask(fresh.port());
  }
  EXPECT_TRUE(b.starts_with("[9]")) << b;
  const Answer updated = Update("b");
  EXPECT_EQ(updated.status, 200) << updated.body;
  EXPECT_EQ(Ask(), b);
  EXPECT_EQ(Version(), 2);
  EXPECT_TRUE(Root().ends_with("/b"));
  EXPECT_EQ(Update((root_.path() / "a").string()).status, 200);
  EXPECT_EQ(Ask(), a);
  // The same path with new content.
  std::filesystem::copy_file(root_.path() / "b/model.safetensors", root_.path() / "a/model.safetensors", std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(Update("a").status, 200);
  EXPECT_EQ(Ask(), b);
}

TEST_P(ServerControl, FailureLeavesTheOldWeights) {
  const std::string a = Ask(), root = Root();
  WriteChainModel(root_, {{5, 9}}, "cut");
  const auto file = root_.path() / "cut/model.safetensors";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1000);
  WriteChainModel(root_, {{5, 9}}, "other");
  root_.Write("other/config.json", R"({"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 256})");
  for (const char* bad : {"cut", "other", "absent"}) {
    const Answer answer = Update(bad);
    EXPECT_EQ(answer.status, 400) << bad << answer.body;
    EXPECT_FALSE(answer.json().Find("success")->as_bool());
    EXPECT_EQ(Ask(), a) << bad;
    EXPECT_EQ(Version(), 0);
    EXPECT_EQ(Root(), root);
  }
}

TEST_P(ServerControl, OnlyFromTheAllowedRoot) {
  checkpoint::TemporaryFolder outside;
  WriteChainModel(outside, {{5, 9}});
  std::filesystem::create_directory_symlink(outside.path(), root_.path() / "link");
  for (const std::string& path : {std::string("../.."), std::string("/etc"), outside.path().string(), std::string("link"), root_.path().string() + "x", std::string("a/../../x")})
    EXPECT_EQ(Update(path).status, 403) << path;
  EXPECT_EQ(Version(), 0);
}

TEST_P(ServerControl, RunningRequestsFinishOrAreAborted) {
  for (const bool abort : {false, true}) {
    Client running(port());
    running.Send(Client::Request("POST", "/generate", R"({"input_ids": [108], "stream": true, "sampling_params": {"max_new_tokens": 60, "ignore_eos": true}})"));
    std::string rest = running.ReadSome();
    const Answer answer = Post(port(), "/update_weights_from_disk", base::StrCat(R"({"model_path": "b", "abort_all_requests": )", abort, "}"));
    EXPECT_EQ(answer.status, 200) << answer.body;
    while (rest.find("[DONE]") == rest.npos) {
      const std::string piece = running.ReadSome();
      ASSERT_NE(piece, "");
      rest += piece;
    }
    if (!abort) { EXPECT_NE(rest.find(R"("type":"length","length":60)"), rest.npos); }
    EXPECT_TRUE(server_->Idle());
  }
}

TEST_P(ServerControl, MemoryGoesBackAndReturns) {
  const std::string a = Ask();
  EXPECT_EQ(Post(port(), "/release_memory_occupation", "{}").status, 200);
  EXPECT_EQ(Post(port(), "/v1/completions", R"({"prompt": "l"})").status, 503);
  EXPECT_EQ(Post(port(), "/resume_memory_occupation", R"({"tags": ["kv_cache"]})").status, 200);
  EXPECT_EQ(Post(port(), "/v1/completions", R"({"prompt": "l"})").status, 503);
  EXPECT_EQ(Post(port(), "/resume_memory_occupation", "").status, 200);
  EXPECT_EQ(Ask(), a);
  // With other weights in between.
  EXPECT_EQ(Post(port(), "/release_memory_occupation", "{}").status, 200);
  EXPECT_EQ(Update("b").status, 200);
  EXPECT_EQ(Post(port(), "/resume_memory_occupation", "{}").status, 200);
  EXPECT_TRUE(Ask().starts_with("[9]"));
}

INSTANTIATE_TEST_SUITE_P(Devices, ServerControl, testing::Values("reference", "cpu"));

}  // namespace
}  // namespace halfbyte::server
