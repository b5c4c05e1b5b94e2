// Every line of the reference data for text: ids, texts, streams, NFC.
#include <gtest/gtest.h>

#include "text/normal_forms.h"
#include "text/streaming_detokenizer.h"
#include "text_data.h"

namespace halfbyte::text {
namespace {

class ReferenceTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto json = TokenizerJson(GetParam());
    if (!json) GTEST_SKIP() << "no tokenizers beside the checkout (" << kShared << ")";
    auto loaded = Tokenizer::FromJson(*json);
    ASSERT_TRUE(loaded) << loaded.error().ToString();
    tokenizer_ = std::move(*loaded);
  }
  std::vector<base::Json> Rows(const char* kind) { return ReferenceRows(std::string(GetParam()) + "." + kind + ".jsonl"); }
  std::optional<Tokenizer> tokenizer_;
};

TEST_P(ReferenceTest, Encode) {
  auto rows = Rows("encode");
  ASSERT_GE(rows.size(), 200u);
  for (const base::Json& row : rows) {
    const std::string& text = row.Find("text")->as_string();
    EXPECT_EQ(tokenizer_->Encode(text, row.Find("add_special_tokens")->as_bool()), Ids(*row.Find("ids"))) << text;
  }
}

TEST_P(ReferenceTest, Decode) {
  for (const base::Json& row : Rows("encode")) {
    std::vector<int32_t> ids = Ids(*row.Find("ids"));
    EXPECT_EQ(tokenizer_->Decode(ids, false), row.Find("decoded")->as_string());
    EXPECT_EQ(tokenizer_->Decode(ids, true), row.Find("decoded_skip")->as_string());
  }
}

std::string Stream(const Tokenizer& tokenizer, const std::vector<int32_t>& ids, bool skip) {
  StreamingDetokenizer stream(tokenizer, skip);
  std::string text;
  for (int32_t id : ids) {
    std::string piece = stream.Push(id);
    EXPECT_EQ(base::Json(piece).Dump().find("\\ufffd"), std::string::npos);
    text += piece;
  }
  return text + stream.Flush();
}

TEST_P(ReferenceTest, Stream) {
  auto rows = Rows("stream");
  ASSERT_GE(rows.size(), 40u);
  int stable = 0;
  for (const base::Json& row : rows) {
    std::vector<int32_t> ids = Ids(*row.Find("ids"));
    const std::string &text = row.Find("text")->as_string(), &text_skip = row.Find("text_skip")->as_string();
    EXPECT_EQ(tokenizer_->Decode(ids, false), text);
    EXPECT_EQ(tokenizer_->Decode(ids, true), text_skip);
    if (!row.Find("stable")->as_bool()) continue;
    ++stable;
    EXPECT_EQ(Stream(*tokenizer_, ids, false), text);
    EXPECT_EQ(Stream(*tokenizer_, ids, true), text_skip);
  }
  EXPECT_GE(stable, 35);
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, ReferenceTest, testing::Values("qwen3", "deepseek_v3", "gptoss", "llama2", "demo"),
                         [](const auto& info) { return std::string(info.param); });

TEST(NfcReference, EveryLine) {
  auto rows = ReferenceRows("nfc.jsonl");
  ASSERT_GE(rows.size(), 300u);
  for (const base::Json& row : rows) {
    std::string text = row.Find("text")->as_string(), out;
    EXPECT_EQ(ToNormalForm(NormalForm::kNfc, text, out) ? out : text, row.Find("nfc")->as_string());
  }
}

}  // namespace
}  // namespace halfbyte::text
