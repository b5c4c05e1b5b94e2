// What a broken or unknown tokenizer.json gives, and the small promises of the Tokenizer.
#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include "text/json_cursor.h"
#include "text_data.h"

namespace halfbyte::text {
namespace {

std::string ErrorOf(const std::string& json) {
  auto tokenizer = Tokenizer::FromJson(json);
  return tokenizer ? "" : tokenizer.error().ToString();
}
std::string With(const std::string& member) { return R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":[["a","b"]]},)" + member + "}"; }

TEST(TokenizerErrors, UnknownComponentsAreNamed) {
  EXPECT_EQ(ErrorOf(With(R"("version":"1.0")")), "");
  for (const char* kind : {"normalizer", "pre_tokenizer", "post_processor", "decoder"}) {
    std::string error = ErrorOf(With(base::StrCat("\"", kind, "\":{\"type\":\"Precompiled\"}")));
    EXPECT_NE(error.find("Precompiled is not supported"), std::string::npos) << error;
    EXPECT_NE(error.find(kind), std::string::npos) << error;
  }
  EXPECT_NE(ErrorOf(R"({"model":{"type":"Unigram","vocab":[["a",-1.5]]}})").find("Unigram is not supported"), std::string::npos);
  EXPECT_NE(ErrorOf(With(R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"\\p{Klingon}"},"behavior":"Isolated"})")).find("Klingon"), std::string::npos);
  EXPECT_NE(ErrorOf(With(R"("pre_tokenizer":{"type":"Split","pattern":{"String":"a"},"behavior":"Sideways"})")).find("Sideways"), std::string::npos);
}

TEST(TokenizerErrors, BrokenFilesSayWhatIsWrong) {
  for (
      auto [json, what] :
      {std::pair<std::string, const char*>{"", "missing"},
       {"[]", "missing"},
       {"{}", "\"model\" is missing"},
       {"{\"model\":{}}", "not supported"},
       {R"({"model":{"type":"BPE"}})", "\"vocab\" is missing"},
       {R"({"model":{"type":"BPE","vocab":[]}})", "vocab"},
       {R"({"model":{"type":"BPE","vocab":{"a":-1}}})", "-1"},
       {R"({"model":{"type":"BPE","vocab":{"a":4194304}}})", "4194304"},
       {R"({"model":{"type":"BPE","vocab":{"a":1.5}}})", "integer"},
       {R"({"model":{"type":"BPE","vocab":{"a":0,"a":1}}})", "twice"},
       {R"({"model":{"type":"BPE","vocab":{"a":5,"b":5},"merges":[]}})", "the id 5 belongs to two tokens, \"a\" and \"b\""},
       {R"({"model":{"type":"BPE","vocab":{"a":0}}})", "\"merges\" is missing"},
       {R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[["a","b"]]}})", "\"b\", which is not in the vocabulary"},
       {R"({"model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":[["a","b"]]}})", "\"ab\", which"},
       {R"({"model":{"type":"BPE","vocab":{"a":0},"merges":["a"]}})", "two tokens"},
       {R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[["a"]]}})", "two tokens"},
       {R"({"model":{"type":"BPE","vocab":{"\ud800":0}}})", "surrogate"},
       {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"\xFF\":0}}}", "UTF-8"},
       {R"({"model":{"type":"BPE","vocab":{}},"model":{}})", "twice"},
       {R"({"model":{"type":"BPE","vocab":{}}} x)", "follows"},
       {With(R"("added_tokens":[{"id":-3,"content":"x"}])"), "-3"},
       {With(R"("added_tokens":[{"id":7}])"), "content"},
       {With(
            R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}]})"),
        "<s>"},
       {std::string(300, '['), "missing"},
       {R"({"x":)" + std::string(300, '[') + std::string(300, ']') + "}", "deep"}}) {
    EXPECT_NE(ErrorOf(json).find(what), std::string::npos) << json.substr(0, 80) << " gave: " << ErrorOf(json);
  }
}

TEST(TokenizerErrors, FolderWithoutOne) {
  auto tokenizer = Tokenizer::FromFolder("/nonexistent");
  ASSERT_FALSE(tokenizer);
  EXPECT_EQ(tokenizer.error().code(), base::ErrorCode::kNotFound);
  EXPECT_NE(tokenizer.error().ToString().find("/nonexistent/tokenizer.json"), std::string::npos);
}

TEST(Tokenizer, IdsAndTokens) {
  Tokenizer t = Tokenizer::FromJson(*TokenizerJson("demo")).value();
  EXPECT_EQ(t.vocab_size(), 4096);
  EXPECT_EQ(t.TokenToId("<|im_end|>"), 2);
  EXPECT_EQ(t.IdToToken(2), "<|im_end|>");
  EXPECT_TRUE(t.IsSpecial(2));
  EXPECT_FALSE(t.IsSpecial(100));
  EXPECT_EQ(t.TokenToId("no such token"), std::nullopt);
  for (int32_t id : {-1, 4096, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(t.IdToToken(id), "");
    EXPECT_EQ(t.TokenBytes(id), "");
    EXPECT_FALSE(t.IsSpecial(id));
    EXPECT_EQ(t.Decode(std::vector<int32_t>{id}, false), "");
  }
  // The bytes of all tokens of a text are the text.
  const std::string text = "Tom has 3 boxes, caf\u00e9 \U0001F600!";
  std::string bytes;
  for (int32_t id : t.Encode(text, false)) bytes += t.TokenBytes(id);
  EXPECT_EQ(bytes, text);
}

TEST(Tokenizer, TokenBytesWithByteFallback) {
  auto json = TokenizerJson("llama2");
  if (!json) GTEST_SKIP() << "no tokenizers beside the checkout";
  Tokenizer t = Tokenizer::FromJson(*json).value();
  EXPECT_EQ(t.TokenBytes(*t.TokenToId("<0xE4>")), "\xE4");
  EXPECT_EQ(t.TokenBytes(*t.TokenToId("\u2581the")), " the");
}

TEST(Tokenizer, AnyBytesEncode) {
  Tokenizer t = Tokenizer::FromJson(*TokenizerJson("demo")).value();
  EXPECT_EQ(t.Encode("a\xFF\xFE" "b\xE4\xBD", true), t.Encode("a\uFFFD\uFFFD" "b\uFFFD", true));
  std::string all;
  for (int i = 0; i < 256; ++i) all.push_back(static_cast<char>(i));
  EXPECT_FALSE(t.Encode(all, true).empty());
}

TEST(JsonCursor, Strings) {
  std::string buffer;
  EXPECT_EQ(*JsonCursor(R"("plain é")").String(buffer), "plain é");
  EXPECT_EQ(*JsonCursor(R"("\"\\\/\b\f\n\r\t\u0041\u00e9\ud83d\ude00")").String(buffer), "\"\\/\b\f\n\r\tA\u00e9\U0001F600");
  for (const char* bad : {"\"open", "\"\\", "\"\\u12\"", "\"\\ud83d\"", "\"\\ude00\"", "\"\\x\"", "\"a\nb\"",
                          "\"\\ud83d\\u0041\"", "x", "\"\\u+123\""})
    EXPECT_FALSE(JsonCursor(bad).String(buffer)) << bad;
}

TEST(JsonCursor, Skip) {
  for (const char* value : {"1", "true", "\"a]\\\"b\"", "{\"a\":[1,2,{\"b\":\"}\"}]}", "[]", "-1.5e3", "[[],[[]]]"}) {
    std::string text = base::StrCat(" ", value, " , 7");
    JsonCursor cursor(text);
    auto skipped = cursor.Skip();
    ASSERT_TRUE(skipped) << value;
    EXPECT_EQ(base::Json::Parse(*skipped)->Dump(), base::Json::Parse(value)->Dump());
    EXPECT_EQ(cursor.Peek(), ',');
  }
  for (const char* bad : {"", ",", "[1", "{\"a\":\"", "\"a\\"}) EXPECT_FALSE(JsonCursor(bad).Skip()) << bad;
}

}  // namespace
}  // namespace halfbyte::text
