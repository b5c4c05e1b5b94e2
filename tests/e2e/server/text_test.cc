// User case T17: what a client sees of an answer's text, streamed and whole.
#include <gtest/gtest.h>

#include <cmath>

#include "harness.h"

namespace halfbyte::server {
namespace {

struct Seen {
  std::string text, finish;
  std::vector<std::string> deltas;
};

class ServerText : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new checkpoint::TemporaryFolder;
    WriteChainModel(*folder_, TextChains());
    server_ = new TestServer(folder_->path());
  }
  static void TearDownTestSuite() {
    delete server_;
    delete folder_;
  }

  static Seen Complete(const std::string& prompt, const std::string& more, bool stream) {
    const std::string body = base::StrCat(R"({"prompt": ")", prompt, more.find("max_tokens") == more.npos ? R"(", "max_tokens": 20)" : "\"", more.empty() ? "" : ", ", more, stream ? R"(, "stream": true)" : "", "}");
    const Answer answer = Post(server_->port(), "/v1/completions", body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    if (answer.status != 200) return {};
    Seen seen;
    std::vector<base::Json> parts = stream ? answer.events() : std::vector<base::Json>{answer.json()};
    EXPECT_EQ(stream, answer.done());
    for (const base::Json& part : parts) {
      const base::Json& choice = part.Find("choices")->as_array().at(0);
      seen.deltas.push_back(choice.Find("text")->as_string());
      seen.text += seen.deltas.back();
      if (!choice.Find("finish_reason")->is_null()) seen.finish = choice.Find("finish_reason")->as_string();
    }
    return seen;
  }
  // Streamed and whole must agree; the streamed one is returned.
  static Seen Both(const std::string& prompt, const std::string& more = "") {
    const Seen streamed = Complete(prompt, more, true), whole = Complete(prompt, more, false);
    EXPECT_EQ(streamed.text, whole.text);
    EXPECT_EQ(streamed.finish, whole.finish);
    return streamed;
  }

  static checkpoint::TemporaryFolder* folder_;
  static TestServer* server_;
};
checkpoint::TemporaryFolder* ServerText::folder_ = nullptr;
TestServer* ServerText::server_ = nullptr;

TEST_F(ServerText, CharacterInTwoTokens) {
  const Seen seen = Both("a");
  EXPECT_EQ(seen.text, "A\xF0\x9F\x98\x80" "B");
  EXPECT_EQ(seen.finish, "stop");
  for (const std::string& d : seen.deltas) EXPECT_EQ(d.find("\xEF\xBF\xBD"), std::string::npos) << d;
}

TEST_F(ServerText, StopStringOverTokensIsNeverShown) {
  const Seen seen = Both("b", R"("stop": ["DEFGHIJ"])");
  EXPECT_EQ(seen.text, "ABC");
  EXPECT_EQ(seen.finish, "stop");
  for (const std::string& d : seen.deltas) EXPECT_EQ(d.find('D'), std::string::npos) << d;
}

TEST_F(ServerText, AlmostAStopStringIsShown) {
  EXPECT_EQ(Both("c", R"("stop": ["DEFGHIJ"])").text, "ABCDEFGHIKL");
}

TEST_F(ServerText, LengthReleasesWhatWasHeld) {
  const Seen seen = Both("b", R"("stop": ["DEFGHIJ"], "max_tokens": 4)");
  EXPECT_EQ(seen.text, "ABCDEFGHI");
  EXPECT_EQ(seen.finish, "length");
}

TEST_F(ServerText, BrokenBytesBecomeReplacementCharacters) {
  EXPECT_EQ(Both("a", R"("max_tokens": 2)").text, "A\xEF\xBF\xBD");
  EXPECT_EQ(Both("f").text, "\xEF\xBF\xBD");
}

TEST_F(ServerText, StopInsideOneToken) {
  const Seen seen = Both("b", R"("stop": ["EF"])");
  EXPECT_EQ(seen.text, "ABCD");
  EXPECT_EQ(seen.finish, "stop");
}

TEST_F(ServerText, StopTokenMinTokensAndEos) {
  EXPECT_EQ(Both("b", R"("stop_token_ids": [303])").text, "ABCDEF");
  EXPECT_EQ(Both("b", R"("stop": "A", "min_tokens": 3)").text, "ABCDEFGHIJK");  // the only A came before the third token
  EXPECT_EQ(Both("b", R"("ignore_eos": true, "max_tokens": 9)").finish, "length");
}

TEST_F(ServerText, EchoAndManyPrompts) {
  const Answer answer = Post(server_->port(), "/v1/completions", R"({"prompt": ["xa", [98]], "echo": true, "n": 2, "max_tokens": 1})");
  const base::Json json = answer.json();
  ASSERT_EQ(answer.status, 200) << answer.body;
  ASSERT_EQ(json.Find("choices")->as_array().size(), 4u);
  const char* want[] = {"xaA", "xaA", "bABC", "bABC"};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(json.Find("choices")->as_array()[i].Find("text")->as_string(), want[i]);
    EXPECT_EQ(json.Find("choices")->as_array()[i].Find("index")->as_int(), static_cast<int64_t>(i));
  }
  EXPECT_EQ(json.Find("usage")->Find("prompt_tokens")->as_int(), 3);
  EXPECT_EQ(json.Find("usage")->Find("completion_tokens")->as_int(), 4);
}

TEST_F(ServerText, LogprobsBelongToTheShownTokens) {
  const Answer answer = Post(server_->port(), "/v1/completions", R"({"prompt": "b", "max_tokens": 20, "logprobs": 2, "echo": true, "stop": "GHI"})");
  const base::Json logprobs = *answer.json().Find("choices")->as_array().at(0).Find("logprobs");
  EXPECT_EQ(logprobs.Find("tokens")->Dump(), R"(["b","ABC","DEF"])");
  EXPECT_EQ(logprobs.Find("text_offset")->Dump(), "[0,1,4]");
  EXPECT_TRUE(logprobs.Find("token_logprobs")->as_array()[0].is_null());
  EXPECT_LT(logprobs.Find("token_logprobs")->as_array()[1].as_double(), 0.0);
  EXPECT_EQ(logprobs.Find("top_logprobs")->as_array()[1].as_object().size(), 2u);
}

// RMSNorm makes of a one-hot row z = (1/512 + eps)^-1/2 at its place, so the follower's logit is z against zeros: ln p = -ln(1 + 511 exp(-z)).
TEST_F(ServerText, LogprobValue) {
  const Answer answer = Post(server_->port(), "/v1/chat/completions", R"({"messages": [{"role": "user", "content": "b"}], "max_tokens": 1, "logprobs": true, "top_logprobs": 5})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const base::Json entry = answer.json().Find("choices")->as_array().at(0).Find("logprobs")->Find("content")->as_array().at(0);
  EXPECT_EQ(entry.Find("token")->as_string(), "ABC");
  EXPECT_EQ(entry.Find("bytes")->Dump(), "[65,66,67]");
  const double z = 1 / std::sqrt(1 / 512.0 + 1e-6);
  EXPECT_NEAR(entry.Find("logprob")->as_double(), -std::log1p(511 * std::exp(-z)), 1e-7);
  ASSERT_EQ(entry.Find("top_logprobs")->as_array().size(), 5u);
  EXPECT_NEAR(entry.Find("top_logprobs")->as_array()[1].Find("logprob")->as_double(), -z, 1e-4);
}

TEST_F(ServerText, ToolCallsAreParsed) {
  const std::string tools = R"("tools": [{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}}])";
  const std::string ask = base::StrCat(R"({"messages": [{"role": "user", "content": "t"}], )", tools);
  const base::Json whole = Post(server_->port(), "/v1/chat/completions", ask + "}").json();
  const base::Json& choice = whole.Find("choices")->as_array().at(0);
  EXPECT_EQ(choice.Find("finish_reason")->as_string(), "tool_calls");
  EXPECT_TRUE(choice.Find("message")->Find("content")->is_null());
  const base::Json& function = *choice.Find("message")->Find("tool_calls")->as_array().at(0).Find("function");
  EXPECT_EQ(function.Find("name")->as_string(), "add");
  EXPECT_EQ(*base::Json::Parse(function.Find("arguments")->as_string()), *base::Json::Parse(R"({"a": 1})"));
  std::string content, finish;
  int calls = 0;
  for (const base::Json& e : Post(server_->port(), "/v1/chat/completions", ask + R"(, "stream": true})").events()) {
    const base::Json& c = e.Find("choices")->as_array().at(0);
    if (const base::Json* d = c.Find("delta")->Find("content")) content += d->as_string();
    if (const base::Json* d = c.Find("delta")->Find("tool_calls")) {
      EXPECT_EQ(d->as_array().at(0).Find("index")->as_int(), calls);
      ++calls;
    }
    if (!c.Find("finish_reason")->is_null()) finish = c.Find("finish_reason")->as_string();
  }
  EXPECT_EQ(content, "");
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(finish, "tool_calls");
  // Without tools it is text.
  EXPECT_NE(Post(server_->port(), "/v1/chat/completions", R"({"messages": [{"role": "user", "content": "t"}]})").body.find("<tool_call>"), std::string::npos);
}

TEST_F(ServerText, ForcedToolCallAndJson) {
  const std::string tools = R"("tools": [{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {"a": {"enum": ["x"]}}, "required": ["a"], "additionalProperties": false}}}])";
  const Answer forced = Post(server_->port(), "/v1/chat/completions", base::StrCat(R"({"messages": [{"role": "user", "content": "l"}], "max_tokens": 3000, "tool_choice": "required", )", tools, "}"));
  ASSERT_EQ(forced.status, 200) << forced.body;
  const base::Json choice = forced.json().Find("choices")->as_array().at(0);
  ASSERT_TRUE(choice.Find("message")->Find("tool_calls")) << forced.body;
  EXPECT_EQ(choice.Find("message")->Find("tool_calls")->as_array().at(0).Find("function")->Find("arguments")->as_string(), R"({"a":"x"})");
  EXPECT_EQ(choice.Find("finish_reason")->as_string(), "tool_calls");
  const Answer schema = Post(server_->port(), "/v1/chat/completions", R"({"messages": [{"role": "user", "content": "l"}], "max_tokens": 3000,
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object", "properties": {"k": {"type": "boolean"}}, "required": ["k"], "additionalProperties": false}}}})");
  const std::string content = schema.json().Find("choices")->as_array().at(0).Find("message")->Find("content")->as_string();
  const auto parsed = base::Json::Parse(content);
  ASSERT_TRUE(parsed) << content;
  EXPECT_TRUE(parsed->Find("k") && parsed->Find("k")->is_bool()) << content;
  // A schema feature that cannot be honoured fails with 400.
  EXPECT_EQ(Post(server_->port(), "/v1/chat/completions", R"({"messages": [{"role": "user", "content": "l"}], "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"not": {}}}}})").status, 400);
}

TEST_F(ServerText, ThinkingIsSplit) {
  const base::Json whole = Post(server_->port(), "/v1/chat/completions", R"({"messages": [{"role": "user", "content": "r"}]})").json();
  const base::Json& message = *whole.Find("choices")->as_array().at(0).Find("message");
  EXPECT_EQ(message.Find("reasoning_content")->as_string(), "why not");
  EXPECT_EQ(message.Find("content")->as_string(), "because");
}

TEST_F(ServerText, SglangGenerate) {
  const Answer answer = Post(server_->port(), "/generate", R"({"text": "b", "sampling_params": {"max_new_tokens": 20, "temperature": 0, "stop": "GHI"}, "return_logprob": true, "logprob_start_len": 0, "rid": "mine"})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const base::Json json = answer.json();
  EXPECT_EQ(json.Find("text")->as_string(), "ABCDEF");
  const base::Json& meta = *json.Find("meta_info");
  EXPECT_EQ(meta.Find("id")->as_string(), "mine");
  EXPECT_EQ(meta.Find("finish_reason")->Dump(), R"({"type":"stop","matched":"GHI"})");
  EXPECT_EQ(meta.Find("output_token_logprobs")->as_array().size(), 2u);
  EXPECT_EQ(meta.Find("input_token_logprobs")->Dump(), "[[null,98,null]]");
  const std::vector<base::Json> events = Post(server_->port(), "/generate", R"({"input_ids": [98], "stream": true, "sampling_params": {"max_new_tokens": 20}})").events();
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().Find("text")->as_string(), "ABCDEFGHIJK");  // cumulative
  EXPECT_EQ(events.back().Find("meta_info")->Find("finish_reason")->Find("matched")->as_int(), kChainEnd);
}

}  // namespace
}  // namespace halfbyte::server
