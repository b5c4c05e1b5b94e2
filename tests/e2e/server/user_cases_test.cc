// The user cases T14 (reload), T17 (streamed text) and T18 (HTTP contract), each letter by its name. What goes beyond them is in the other files here.
#include <gtest/gtest.h>

#include "harness.h"
#include "model/reload.h"

namespace halfbyte::server {
namespace {

// T14: model A says 6 after 5, model B says 9; both repeat 'l' for ever.
void WriteModels(const checkpoint::TemporaryFolder& root) {
  WriteChainModel(root, {{5, 6}, {6, kChainEnd}, {'l', 'l'}}, "a");
  WriteChainModel(root, {{5, 9}, {9, kChainEnd}, {'l', 'l'}}, "b");
}

class T14Reload : public testing::TestWithParam<const char*> {
 protected:
  static std::string Answered(int port) {
    std::string ids;
    for (int i = 0; i < 40; ++i) ids += "5,";  // two whole blocks, which the prefix cache keeps
    const Answer a = Post(port, "/generate", base::StrCat(R"({"input_ids": [)", ids, R"(5], "sampling_params": {"max_new_tokens": 4, "temperature": 0}, "return_logprob": true, "top_logprobs_num": 5})"));
    EXPECT_EQ(a.status, 200) << a.body;
    const base::Json json = a.json();
    return json.Find("output_ids")->Dump() + json.Find("meta_info")->Find("output_token_logprobs")->Dump() + json.Find("meta_info")->Find("output_top_logprobs")->Dump();
  }
  static int Update(int port, const std::string& path) { return Post(port, "/update_weights_from_disk", base::StrCat(R"({"model_path": ")", path, "\"}")).status; }
};

TEST_P(T14Reload, TheWholeCase) {
  checkpoint::TemporaryFolder root;
  WriteModels(root);
  ServerSettings settings;
  settings.device = GetParam();
  settings.service.weight_root = root.path();
  TestServer server(root.path() / "a", settings);
  const int port = server.port();
  std::string fresh_b;
  {
    TestServer fresh(root.path() / "b", settings);
    fresh_b = Answered(fresh.port());
  }
  const std::string a = Answered(port);
  EXPECT_TRUE(a.starts_with("[6]") && fresh_b.starts_with("[9]")) << a << fresh_b;
  for (int time = 0; time < 3; ++time) {  // to itself, to B and back, three times
    EXPECT_EQ(Update(port, "a"), 200);
    EXPECT_EQ(Answered(port), a);
    EXPECT_EQ(Update(port, "b"), 200);
    EXPECT_EQ(Answered(port), fresh_b);
  }
  EXPECT_EQ(Update(port, "a"), 200);
  // A truncated shard leaves A.
  WriteChainModel(root, {{5, 9}}, "cut");
  const auto cut = root.path() / "cut/model.safetensors";
  std::filesystem::resize_file(cut, std::filesystem::file_size(cut) - 1000);
  EXPECT_EQ(Update(port, "cut"), 400);
  EXPECT_EQ(Answered(port), a);
  EXPECT_TRUE(Get(port, "/v1/models").json().Find("data")->as_array().at(0).Find("root")->as_string().ends_with("/a"));
  // The same path, other content.
  std::filesystem::copy_file(root.path() / "b/model.safetensors", root.path() / "a/model.safetensors", std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(Update(port, "a"), 200);
  EXPECT_EQ(Answered(port), fresh_b);
  // While a long request runs: it ends on the old weights, and nothing breaks.
  Client running(port);
  running.Send(Client::Request("POST", "/generate", R"({"input_ids": [108], "stream": true, "sampling_params": {"max_new_tokens": 400, "ignore_eos": true}})"));
  std::string text = running.ReadSome();
  EXPECT_EQ(Update(port, "b"), 200);
  for (std::string piece; text.find("[DONE]") == text.npos && !(piece = running.ReadSome()).empty();) text += piece;
  EXPECT_NE(text.find(R"("type":"length","length":400)"), text.npos);
  EXPECT_EQ(Get(port, "/health").status, 200);
}
INSTANTIATE_TEST_SUITE_P(Devices, T14Reload, testing::Values("reference", "cpu"));

TEST(T14Reload, AddressesStay) {
  checkpoint::TemporaryFolder root;
  WriteModels(root);
  model::LoadSettings settings;
  settings.device = "cpu";
  auto loaded = model::LoadModel(root.path() / "a", settings);
  ASSERT_TRUE(loaded) << loaded.error().ToString();
  model::Weights& w = loaded->model->weights();
  auto addresses = [&] {
    std::vector<const void*> out{w.embedding.get(), w.lm_head.get(), w.final_norm.data(), w.inv_freq.data()};
    for (const model::LayerWeights& l : w.layers)
      out.insert(out.end(), {l.attention_norm.data(), l.ffn_norm.data(), l.q_norm.data(), l.k_norm.data(), l.q.get(), l.k.get(), l.v.get(), l.o.get(), l.router.get(), l.experts.get()});
    return out;
  };
  const std::vector<const void*> before = addresses();
  for (const char* name : {"b", "a", "b"}) {
    auto reload = model::Reload::Prepare(*loaded->model, loaded->plan, root.path() / name, settings);
    ASSERT_TRUE(reload) << reload.error().ToString();
    reload->Apply(*loaded->model);
    EXPECT_EQ(addresses(), before);
  }
}

// T17
struct Seen {
  std::string text, finish;
  bool replacement = false, holds_d = false;  // in any delta
};

class T17StreamedText : public testing::Test {
 protected:
  // Streamed and whole, which must agree.
  static Seen Complete(const Successors& chain, const std::string& prompt, const std::string& more) {
    checkpoint::TemporaryFolder folder;
    WriteChainModel(folder, chain);
    TestServer server(folder.path());
    const std::string body = base::StrCat(R"({"prompt": ")", prompt, "\"", more);
    const base::Json whole = Post(server.port(), "/v1/completions", body + "}").json();
    const Answer streamed = Post(server.port(), "/v1/completions", body + R"(, "stream": true})");
    EXPECT_TRUE(streamed.done());
    Seen seen;
    for (const base::Json& e : streamed.events()) {
      const base::Json& c = e.Find("choices")->as_array().at(0);
      const std::string& delta = c.Find("text")->as_string();
      seen.text += delta;
      seen.replacement |= delta.find("\xEF\xBF\xBD") != delta.npos;
      seen.holds_d |= delta.find('D') != delta.npos;
      if (!c.Find("finish_reason")->is_null()) seen.finish = c.Find("finish_reason")->as_string();
    }
    EXPECT_EQ(whole.Find("choices")->as_array().at(0).Find("text")->as_string(), seen.text);
    EXPECT_EQ(whole.Find("choices")->as_array().at(0).Find("finish_reason")->as_string(), seen.finish);
    EXPECT_EQ(Get(server.port(), "/health").status, 200);
    return seen;
  }
  static Seen Chain(const std::string& prompt, const std::string& more) { return Complete(TextChains(), prompt, more); }
};

TEST_F(T17StreamedText, A_CharacterInTwoTokens) {
  const Seen s = Chain("a", "");
  EXPECT_EQ(s.text, "A\xF0\x9F\x98\x80" "B");
  EXPECT_FALSE(s.replacement);
}

TEST_F(T17StreamedText, B_StopStringOverFourTokens) {
  const Seen s = Chain("b", R"(, "stop": ["DEFGHIJ"])");
  EXPECT_EQ(s.text, "ABC");
  EXPECT_EQ(s.finish, "stop");
  EXPECT_FALSE(s.holds_d);
}

TEST_F(T17StreamedText, C_AlmostTheStopString) {
  const Successors chain{{'b', 310}, {310, 302}, {302, 303}, {303, 304}, {304, 306}, {306, kChainEnd}};
  EXPECT_EQ(Complete(chain, "b", R"(, "stop": ["DEFGHIJ"])").text, "ABCDEFGHIK");
}

TEST_F(T17StreamedText, D_LengthReleasesWhatWasHeld) {
  const Seen s = Chain("b", R"(, "stop": ["DEFGHIJ"], "max_tokens": 4)");
  EXPECT_EQ(s.text, "ABCDEFGHI");
  EXPECT_EQ(s.finish, "length");
}

TEST_F(T17StreamedText, E_BrokenBytesAreValidJson) {
  EXPECT_EQ(Chain("a", R"(, "max_tokens": 2)").text, "A\xEF\xBF\xBD");  // half a character
  EXPECT_EQ(Chain("f", "").text, "\xEF\xBF\xBD");                       // the byte FF
}

TEST_F(T17StreamedText, F_StopInsideOneToken) {
  const Seen s = Chain("b", R"(, "stop": ["EF"])");
  EXPECT_EQ(s.text, "ABCD");
  EXPECT_EQ(s.finish, "stop");
}

// T18
class T18HttpContract : public testing::Test {
 protected:
  T18HttpContract() { WriteChainModel(folder_, TextChains(), "", 'b'); }
  checkpoint::TemporaryFolder folder_;
};

TEST_F(T18HttpContract, A_UsageChunk) {
  TestServer server(folder_.path());
  for (const char* options : {R"({"include_usage": true})", "{}", "null"}) {
    const Answer a = Post(server.port(), "/v1/chat/completions", base::StrCat(R"({"messages": [{"role": "user", "content": "b"}], "stream": true, "stream_options": )", options, "}"));
    const std::vector<base::Json> events = a.events();
    ASSERT_FALSE(events.empty()) << a.body;
    const base::Json* usage = events.back().Find("usage");
    if (options[1] == '"') {
      EXPECT_EQ(events.back().Find("choices")->Dump(), "[]");
      for (const char* field : {"prompt_tokens", "completion_tokens", "total_tokens"}) EXPECT_GT(usage->Find(field)->as_int(), 0);
    } else {
      for (const base::Json& e : events) EXPECT_FALSE(e.Find("usage")) << options;
    }
  }
}

TEST_F(T18HttpContract, B_InfinityAmongLogprobsIsJson) {
  for (const char* device : {"reference", "cpu"}) {
    ServerSettings settings;
    settings.device = device;
    TestServer server(folder_.path(), settings);
    const Answer a = Post(server.port(), "/v1/chat/completions", R"({"messages": [{"role": "user", "content": "b"}], "max_tokens": 1, "logprobs": true, "top_logprobs": 5})");
    ASSERT_EQ(a.status, 200) << a.body;
    ASSERT_FALSE(a.json().is_null()) << a.body;  // a strict parser
    const base::Json entry = a.json().Find("choices")->as_array().at(0).Find("logprobs")->Find("content")->as_array().at(0);
    EXPECT_EQ(entry.Find("logprob")->as_double(), 0.0);
    const auto& top = entry.Find("top_logprobs")->as_array();
    ASSERT_EQ(top.size(), 5u);
    for (size_t i = 1; i < 5; ++i) EXPECT_EQ(top[i].Find("logprob")->as_double(), -9999.0) << device;
    EXPECT_EQ(Post(server.port(), "/v1/completions", R"({"prompt": "b", "max_tokens": 1, "logprobs": 5})").json().Find("choices")->as_array().at(0).Find("logprobs")->Find("token_logprobs")->Dump(), "[0.0]");
  }
}

TEST_F(T18HttpContract, C_WhatIsWrongIs400) {
  ServerSettings settings;
  settings.http.max_body_bytes = 1 << 16;
  TestServer server(folder_.path(), settings);
  auto message = [](const std::string& more) { return R"({"messages": [{"role": "user", "content": "b"}], )" + more + "}"; };
  const std::string bodies[] = {"{:", R"({"messages": {}})", message(R"("temperature": "x")"), message(R"("max_tokens": -1)"), message(R"("n": 0)"), message(R"("logprobs": true, "top_logprobs": 1000)"),
                                "{\"messages\": [{\"role\": \"user\", \"content\": \"\xC3\x28\"}]}", message("\"tools\": " + std::string(3000, '[') + std::string(3000, ']')), std::string(1 << 17, 'x')};
  for (const std::string& body : bodies) {
    const Answer a = Post(server.port(), "/v1/chat/completions", body);
    EXPECT_EQ(a.status, body.size() > (1 << 16) ? 413 : 400) << body.substr(0, 100);
    const base::Json json = a.json();
    const base::Json* error = json.Find("error");
    ASSERT_TRUE(error) << a.body;
    for (const char* field : {"message", "type", "code"}) EXPECT_TRUE(error->Find(field)) << field;
    EXPECT_EQ(Get(server.port(), "/health").status, 200);
  }
}

TEST_F(T18HttpContract, D_EveryRouteWantsTheKeyButHealthAndThePage) {
  ServerSettings settings;
  settings.service.api_keys = {"key"};
  TestServer server(folder_.path(), settings);
  for (const char* path : {"/v1/models", "/v1/chat/completions", "/v1/completions", "/generate", "/tokenize", "/detokenize", "/metrics", "/load_report", "/get_model_info", "/abort_request", "/flush_cache",
                           "/update_weights_from_disk", "/release_memory_occupation", "/resume_memory_occupation", "/unknown", "/v2/models", "/docs"})
    for (const char* method : {"GET", "POST"}) {
      EXPECT_EQ(Client(server.port()).Ask(method, path, "{}").status, 401) << method << path;
      EXPECT_NE(Client(server.port()).Ask(method, path, "{}", "authorization: Bearer key\r\n").status, 401) << method << path;
    }
  EXPECT_EQ(Get(server.port(), "/health").status, 200);
  EXPECT_EQ(Get(server.port(), "/").status, 200);
}

// E, the default address, is ServeProgram.ListensOnLoopbackUnlessTold.

TEST_F(T18HttpContract, F_WeightsOnlyFromTheRoot) {
  ServerSettings settings;
  settings.service.weight_root = folder_.path();
  TestServer server(folder_.path(), settings);
  for (const char* path : {"../..", "/etc", "/", "a/../../.."}) EXPECT_EQ(Post(server.port(), "/update_weights_from_disk", base::StrCat(R"({"model_path": ")", path, "\"}")).status, 403) << path;
}

}  // namespace
}  // namespace halfbyte::server
