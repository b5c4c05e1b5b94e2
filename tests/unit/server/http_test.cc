#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "server/chat_messages.h"
#include "server/fields.h"
#include "server/generation_fields.h"
#include "server/http_exchange.h"
#include "server/http_message.h"
#include "server/openai_format.h"
#include "server/service.h"

namespace halfbyte::server {
namespace {

base::Json J(std::string_view text) { return *base::Json::Parse(text); }

TEST(HttpMessage, Bytes) {
  HttpResponse r{429, "application/json", "{}", {{"retry-after", "1"}, {"x", "a\r\nset-cookie: b"}}};
  const std::string wire = WireResponse(r, {});
  EXPECT_TRUE(wire.starts_with("HTTP/1.1 429 Too Many Requests\r\n"));
  EXPECT_TRUE(wire.ends_with("\r\n\r\n{}"));
  EXPECT_NE(wire.find("content-length: 2\r\n"), wire.npos);
  EXPECT_EQ(wire.find("\r\nset-cookie"), wire.npos);
  EXPECT_TRUE(WireResponse(r, {.head_only = true}).ends_with("\r\n\r\n"));
  EXPECT_EQ(WireResponse(r, {.chunked = true}).find("content-length"), std::string::npos);
  EXPECT_EQ(WireChunk(std::string(26, 'x')), "1a\r\n" + std::string(26, 'x') + "\r\n");
}

TEST(Exchange, OrderOverflowAndHangUp) {
  int woken = 0, gone = 0;
  QueuedExchange e({}, 10, [&] { ++woken; });
  e.Write("lost");  // not begun
  e.WhenGone([&] { ++gone; });
  e.Begin({});
  e.Write("abc");
  e.Write("def");
  EXPECT_EQ(woken, 1);
  QueuedExchange::Output out = e.Take();
  EXPECT_TRUE(out.head && out.streamed && !out.ended);
  EXPECT_EQ(out.bytes, "abcdef");
  e.Write(std::string(11, 'x'));
  EXPECT_TRUE(e.Take().overflow);
  e.SetGone();
  e.SetGone();
  EXPECT_EQ(gone, 1);
  e.WhenGone([&] { ++gone; });  // late: at once
  EXPECT_EQ(gone, 2);

  QueuedExchange whole({}, 10, [] {});
  whole.WhenGone([&] { gone = 100; });
  whole.Send({200, "", "first", {}});
  whole.Send({200, "", "second", {}});
  EXPECT_EQ(whole.Take().head->body, "first");
  whole.SetGone();
  EXPECT_EQ(gone, 2);  // after a complete answer nobody needs to know
}

TEST(Service, KeysAreComparedWhole) {
  const std::vector<std::string> keys{"abc", "longer key"};
  EXPECT_TRUE(Authorized({}, ""));
  for (const char* good : {"Bearer abc", "bearer abc", "Bearer longer key"}) EXPECT_TRUE(Authorized(keys, good)) << good;
  for (const char* bad : {"", "abc", "Bearer", "Bearer ", "Bearer abcd", "Bearer ab", "Bearer  abc", "Basic abc", "Bearer abc "}) EXPECT_FALSE(Authorized(keys, bad)) << bad;
}

TEST(Fields, TypesRangesAndUnknownNames) {
  const base::Json body = J(R"({"a": 1, "b": "x", "c": null, "d": 2.0, "e": 3.5, "f": true, "g": ["s"], "z": 0})");
  Fields f(body, "p.");
  int64_t a = 0, c = 7, d = 0;
  bool flag = false;
  std::string b;
  std::vector<std::string> g;
  f.Int("a", 0, 5, a);
  f.String("b", b);
  f.Int("c", 0, 5, c);
  f.Int("d", 0, 5, d);
  f.Bool("f", flag);
  f.Strings("g", 4, g);
  EXPECT_FALSE(f.error());
  EXPECT_TRUE(a == 1 && b == "x" && c == 7 && d == 2 && flag && g.size() == 1);
  EXPECT_EQ(f.Unknown(), (std::vector<std::string>{"p.e", "p.z"}));
  f.Int("e", 0, 5, a);
  EXPECT_EQ(f.error()->param, "p.e");
  f.Int("b", 0, 5, a);
  EXPECT_EQ(f.error()->param, "p.e");  // the first one stays
  Fields range(body);
  range.Int("a", 2, 5, a);
  EXPECT_EQ(range.error()->status, 400);
}

// User case T18 b: what is no number in JSON is never in an answer.
TEST(Format, LogprobsAreAlwaysJson) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(SafeLogprob(-inf), -9999.0);
  EXPECT_EQ(SafeLogprob(std::nanf("")), -9999.0);
  EXPECT_EQ(SafeLogprob(-1e30f), -9999.0);
  EXPECT_EQ(SafeLogprob(-0.5f), -0.5);
}

TEST(Sampling, DefaultsComeFromTheModel) {
  EXPECT_EQ(DefaultSampling({}).temperature, 1.0f);
  EXPECT_EQ(DefaultSampling(J(R"({"do_sample": false, "temperature": 0.6})")).temperature, 0.0f);
  const engine::SamplingParams p = DefaultSampling(J(R"({"temperature": 0.6, "top_p": 0.95, "top_k": 20, "min_p": "x", "repetition_penalty": 1.05})"));
  EXPECT_FLOAT_EQ(p.temperature, 0.6f);
  EXPECT_FLOAT_EQ(p.top_p, 0.95f);
  EXPECT_EQ(p.top_k, 20);
  EXPECT_EQ(p.min_p, 0.0f);
  EXPECT_FLOAT_EQ(p.repetition_penalty, 1.05f);
}

TEST(Messages, BroughtIntoTheTemplatesForm) {
  const base::Json body = J(R"({"messages": [{"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    {"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}}]}, {"role": "assistant", "content": null}]})");
  Fields f(body);
  const base::Json m = ReadMessages(f);
  ASSERT_FALSE(f.error()) << f.error()->message;
  EXPECT_EQ(m.Dump(), R"([{"role":"system","content":"a\nb"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":{"x":1}}}]},{"role":"assistant","content":""}])");
  const base::Json bad = J(R"({"messages": [{"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": "{x"}}]}]})");
  Fields g(bad);
  ReadMessages(g);
  EXPECT_EQ(g.error()->param, "messages[0].tool_calls");
}

}  // namespace
}  // namespace halfbyte::server
