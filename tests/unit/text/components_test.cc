// Components one at a time, and small whole tokenizers, against what Hugging Face's library makes of them (tools/make-text-golden.py).
#include <gtest/gtest.h>

#include "text/byte_level.h"
#include "text/decoder.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "text/streaming_detokenizer.h"
#include "text_data.h"

namespace halfbyte::text {
namespace {

using base::Json;

std::vector<Json> GoldenRows(const char* name) {
  std::vector<Json> rows;
  std::ifstream in(std::string(HALFBYTE_TEST_DATA) + "/text/" + name);
  for (std::string line; std::getline(in, line);) rows.push_back(Json::Parse(line).value());
  return rows;
}

Json Normalize(const Json& component, const std::string& text) {
  auto normalizer = Normalizer::FromJson(&component);
  if (!normalizer) return Json(normalizer.error().ToString());
  std::string buffer;
  return Json(normalizer->Apply(text, buffer));
}

Json PreTokenize(const Json& component, const std::string& text) {
  auto pre_tokenizer = PreTokenizer::FromJson(&component);
  if (!pre_tokenizer) return Json(pre_tokenizer.error().ToString());
  Json::Array pieces;
  // The library writes bytes as characters in the pre-tokenizer, we do in the model.
  auto add = [&](Piece piece) {
    pieces.push_back(pre_tokenizer->gives_bytes() ? Json(BytesToChars(piece.text)) : Json(piece.text));
  };
  pre_tokenizer->Run({text, true}, add);
  return Json(pieces);
}

Json Decode(const Json& component, const Json& tokens, bool eager) {
  auto decoder = Decoder::FromJson(&component);
  if (!decoder) return Json(decoder.error().ToString());
  DecodeStream stream = decoder->Start(eager);
  std::string text;
  for (const Json& token : tokens.as_array()) {
    stream.Push(token.as_string());
    text += stream.Take();
  }
  stream.Finish();
  return Json(text + stream.Take());
}

TEST(Components, AsTheLibrary) {
  auto rows = GoldenRows("components.jsonl");
  ASSERT_GT(rows.size(), 150u);
  const Json texts = *rows[0].Find("texts"), tokens = *rows[0].Find("tokens");
  for (size_t r = 1; r < rows.size(); ++r) {
    const std::string& kind = rows[r].Find("kind")->as_string();
    const Json& component = *rows[r].Find("json");
    const Json& in = kind == "decoder" ? tokens : texts;
    for (size_t i = 0; i < in.as_array().size(); ++i) {
      const Json &given = in.as_array()[i], &want = rows[r].Find("out")->as_array()[i];
      Json got = kind == "decoder" ? Decode(component, given, false)
               : kind == "normalizer" ? Normalize(component, given.as_string()) : PreTokenize(component, given.as_string());
      EXPECT_EQ(got.Dump(), want.Dump()) << kind << ' ' << component.Dump() << "\n of " << given.Dump();
    }
  }
}

TEST(Components, SmallTokenizersAsTheLibrary) {
  auto rows = GoldenRows("small_tokenizers.jsonl");
  ASSERT_GT(rows.size(), 20u);
  for (const Json& row : rows) {
    auto tokenizer = Tokenizer::FromJson(row.Find("json")->Dump());
    ASSERT_TRUE(tokenizer) << tokenizer.error().ToString();
    for (const Json& c : row.Find("cases")->as_array()) {
      const Json::Array& fields = c.as_array();
      const std::string& text = fields[0].as_string();
      std::vector<int32_t> ids = Ids(fields[2]);
      EXPECT_EQ(tokenizer->Encode(text, fields[1].as_bool()), ids)
          << row.Find("json")->Dump().substr(0, 900) << "\n of " << fields[0].Dump();
      EXPECT_EQ(tokenizer->Decode(ids, false), fields[3].as_string());
      EXPECT_EQ(tokenizer->Decode(ids, true), fields[4].as_string());
    }
  }
}

TEST(Components, StreamsGiveTheSameAsWholeTexts) {
  auto rows = GoldenRows("components.jsonl");
  const Json tokens = *rows[0].Find("tokens");
  for (const Json& row : rows) {
    if (row.Find("kind") == nullptr || row.Find("kind")->as_string() != "decoder") continue;
    for (const Json& given : tokens.as_array())
      EXPECT_EQ(Decode(*row.Find("json"), given, true).Dump(), Decode(*row.Find("json"), given, false).Dump())
          << row.Find("json")->Dump();
  }
}

}  // namespace
}  // namespace halfbyte::text
