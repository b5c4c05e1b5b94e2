// The user cases T17 (streamed text) and T20 (tokenizer as written) of the specification, by their letters.
#include <gtest/gtest.h>

#include <random>

#include "text/stop_strings.h"
#include "text/streaming_detokenizer.h"
#include "text/unicode.h"
#include "text_data.h"

namespace halfbyte::text {
namespace {

using testing::Test;

// ---- T17: byte-level tokenizer with 300 = F0 9F, 301 = 98 80, 302 "DEF", 303 "G", 304 "HI", 305 "J", 306 "K", 307 = FF, 310 "ABC" ----

class T17StreamedText : public Test {
 protected:
  T17StreamedText() {
    ByteTokenizer b;
    // Byte symbols keep the ids of their values; the single letters are there already.
    b.more = {{"\xF0\x9F", 300}, {"\x98\x80", 301}, {"DEF", 302}, {"HI", 304}, {"ABC", 310}};
    tokenizer_ = b.Build();
  }
  static constexpr int kG = 'G', kJ = 'J', kK = 'K', kFf = 255;

  // Every delta of a stream with stop strings, as a server would send them.
  struct Answer { std::vector<std::string> deltas; std::string text, finish_reason; };
  Answer Generate(const std::vector<int32_t>& ids, std::vector<std::string> stop) {
    StreamingDetokenizer stream(*tokenizer_, true);
    StopStrings matcher(std::move(stop));
    Answer answer;
    auto send = [&](std::string delta) {
      EXPECT_TRUE(IsValidUtf8(delta));
      answer.text += delta;
      if (!delta.empty()) answer.deltas.push_back(std::move(delta));
    };
    for (int32_t id : ids) {
      send(matcher.Push(stream.Push(id)));
      if (matcher.stopped()) break;
    }
    if (!matcher.stopped()) {
      send(matcher.Push(stream.Flush()));
      send(matcher.Flush());
    }
    answer.finish_reason = matcher.stopped() ? "stop" : "length";
    return answer;
  }
  std::optional<Tokenizer> tokenizer_;
};

TEST_F(T17StreamedText, A_EmojiAcrossTokens) {
  std::vector<int32_t> ids = {'A', 300, 301, 'B'};
  Answer answer = Generate(ids, {});
  EXPECT_EQ(answer.text, "A😀B");
  for (const std::string& delta : answer.deltas) EXPECT_EQ(delta.find(kReplacementCharacter), std::string::npos);
  EXPECT_EQ(tokenizer_->Decode(ids, true), "A😀B");
}

TEST_F(T17StreamedText, B_StopStringAcrossTokens) {
  Answer answer = Generate({310, 302, kG, 304, kJ}, {"DEFGHIJ"});
  EXPECT_EQ(answer.text, "ABC");
  EXPECT_EQ(answer.finish_reason, "stop");
  for (const std::string& delta : answer.deltas) EXPECT_EQ(delta.find('D'), std::string::npos);
}

TEST_F(T17StreamedText, C_AlmostAStopString) {
  EXPECT_EQ(Generate({310, 302, kG, 304, kK}, {"DEFGHIJ"}).text, "ABCDEFGHIK");
}

TEST_F(T17StreamedText, D_EndsInsideAStopString) {
  Answer answer = Generate({310, 302, kG, 304}, {"DEFGHIJ"});
  EXPECT_EQ(answer.text, "ABCDEFGHI");
  EXPECT_EQ(answer.finish_reason, "length");
}

TEST_F(T17StreamedText, E_NeverBrokenUtf8) {
  EXPECT_EQ(Generate({'A', 300}, {}).text, "A\uFFFD");
  EXPECT_EQ(Generate({kFf, 'B', kFf, kFf}, {}).text, "\uFFFDB\uFFFD\uFFFD");
  EXPECT_EQ(tokenizer_->Decode(std::vector<int32_t>{'A', 300}, true), "A\uFFFD");
}

TEST_F(T17StreamedText, F_StopStringInsideAToken) { EXPECT_EQ(Generate({310, 302}, {"EF"}).text, "ABCD"); }

// ---- T20: 256 byte symbols, merges ("1","2")=256, ("12","3")=257, ("4","5")=258, ("3","4")=259, ("123","45")=260 ----

ByteTokenizer Digits(const std::string& pattern) {
  ByteTokenizer b;
  b.merges = {{"1", "2"}, {"12", "3"}, {"4", "5"}, {"3", "4"}, {"123", "45"}};
  if (!pattern.empty())
    b.pre_tokenizer = R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":)" + pattern +
                      R"(,"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]})";
  return b;
}

TEST(T20TokenizerAsWritten, A_RegexPattern) {
  EXPECT_EQ(Digits(R"({"Regex":"\\p{N}{1,3}"})").Build().Encode("12345", false), (std::vector<int32_t>{257, 258}));
}

TEST(T20TokenizerAsWritten, B_StringPatternIsLiteral) {
  Tokenizer tokenizer = Digits(R"({"String":"\\p{N}{1,3}"})").Build();
  EXPECT_EQ(tokenizer.Encode("12345", false), std::vector<int32_t>{260});
  // The literal does split where it stands.
  EXPECT_EQ(tokenizer.Encode("12\\p{N}{1,3}3", false).front(), 256);
}

TEST(T20TokenizerAsWritten, C_AddedTokenStripsBlanks) {
  for (bool strip : {true, false}) {
    ByteTokenizer b = Digits("");
    std::string flag = strip ? "true" : "false";
    b.added_tokens = R"([{"id":270,"content":"<|end|>","single_word":false,"lstrip":)" + flag + R"(,"rstrip":)" + flag +
                     R"(,"normalized":false,"special":true}])";
    std::vector<int32_t> want = strip ? std::vector<int32_t>{'a', 270, 'b'} : std::vector<int32_t>{'a', ' ', 270, ' ', 'b'};
    EXPECT_EQ(b.Build().Encode("a <|end|> b", false), want);
    EXPECT_EQ(b.Build().vocab_size(), 271);
  }
}

TEST(T20TokenizerAsWritten, D_NfcNormalizer) {
  ByteTokenizer b = Digits("");
  EXPECT_NE(b.Build().Encode("Cafe\u0301", false), b.Build().Encode("Caf\u00e9", false));
  b.normalizer = R"({"type":"NFC"})";
  EXPECT_EQ(b.Build().Encode("Cafe\u0301", false), b.Build().Encode("Caf\u00e9", false));
}

TEST(T20TokenizerAsWritten, E_DecodeOfEncodeIsTheText) {
  std::mt19937 random(20);
  Tokenizer plain = Digits(R"({"Regex":"\\p{N}{1,3}"})").Build();
  const std::u32string special = U"\u2029\u200D\u2028\uFEFF\u0000\U0001F469\u0301 \n1234";
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = static_cast<int>(random() % 40); i > 0; --i) {
      char32_t code = random() % 3 == 0 ? special[random() % special.size()] : static_cast<char32_t>(random() % 0x110000);
      if (code < 0xD800 || code > 0xDFFF) AppendUtf8(text, code);
    }
    EXPECT_EQ(plain.Decode(plain.Encode(text, false), false), text);
  }
}

}  // namespace
}  // namespace halfbyte::text
