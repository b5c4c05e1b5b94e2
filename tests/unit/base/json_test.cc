#include "base/json.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace halfbyte::base {
namespace {

TEST(Json, KeepsKeyOrderAndIntegerTypes) {
  auto v = Json::Parse(R"({"b":1,"a":2.0,"c":18446744073709551615,"d":[true,null,"x"]})");
  ASSERT_TRUE(v) << v.error().ToString();
  EXPECT_EQ(v->Dump(), R"({"b":1,"a":2.0,"c":18446744073709551615,"d":[true,null,"x"]})");
  EXPECT_EQ(v->Find("b")->type(), Json::Type::kInt);
  EXPECT_EQ(v->Find("a")->type(), Json::Type::kDouble);
  EXPECT_EQ(v->Find("nope"), nullptr);
}

TEST(Json, RefusesRepeatedKeysInSmallAndLargeObjects) {
  EXPECT_FALSE(Json::Parse(R"({"a":1,"a":2})"));
  std::string large = "{";
  for (int i = 0; i < 40; ++i) large += "\"k" + std::to_string(i) + "\":0,";
  EXPECT_TRUE(Json::Parse(large + "\"last\":1}"));
  auto bad = Json::Parse(large + "\"k3\":1}");
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().ToString(), testing::HasSubstr("\"k3\" appears twice"));
}

TEST(Json, LimitsDepth) {
  std::string deep(10000, '[');
  auto bad = Json::Parse(deep);
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().ToString(), testing::HasSubstr("nested deeper than 256"));
}

TEST(Json, RefusesWhatIsNotJson) {
  for (const char* text : {"", "{", "{:", "[1,]", "{\"a\":1} x", "\"\xff\xfe\"", "nul", "01", "Infinity"}) EXPECT_FALSE(Json::Parse(text)) << text;
  EXPECT_FALSE(Json::Parse(std::string_view("{}\0", 3)));
}

TEST(Json, ReadsBareInfinityWhereAsked) {
  auto v = Json::Parse(R"({"a":[0.0,Infinity],"b":-Infinity,"c":"Infinity","d":NaN})", {.allow_nonfinite = true});
  ASSERT_TRUE(v) << v.error().ToString();
  EXPECT_TRUE(std::isinf(v->Find("a")->as_array()[1].as_double()));
  EXPECT_LT(v->Find("b")->as_double(), 0);
  EXPECT_EQ(v->Find("c")->as_string(), "Infinity");
  EXPECT_TRUE(std::isnan(v->Find("d")->as_double()));
}

TEST(Json, DumpReplacesBadUtf8AndNonfinite) {
  Json v = Json::MakeObject();
  v.Set("s", std::string("a\xff"));
  v.Set("n", std::nan(""));
  EXPECT_EQ(v.Dump(), "{\"s\":\"a\xEF\xBF\xBD\",\"n\":null}");
}

TEST(Json, TypedMembersNameTheKey) {
  auto v = *Json::Parse(R"({"n":"8","f":4096.0,"z":null})");
  EXPECT_THAT(v.GetInt("n").error().ToString(), testing::HasSubstr("\"n\" is of type string"));
  EXPECT_THAT(v.GetInt("q").error().ToString(), testing::HasSubstr("\"q\" is missing"));
  EXPECT_EQ(*v.GetInt("f"), 4096);
  EXPECT_EQ(*v.GetIntOr("z", 7), 7);
}

TEST(Error, ToStringShowsTheChainOutermostFirst) {
  Error e = Error(ErrorCode::kBadFile, "ends early").At("tensor x").At("shard 2").Hint("download it again");
  EXPECT_EQ(e.ToString(), "shard 2: tensor x: ends early (download it again)");
}

}  // namespace
}  // namespace halfbyte::base
