#include "accepts.h"

namespace halfbyte::text {
namespace {

TEST(JsonGrammar, TakesJsonObjectsAndNothingElse) {
  Texts object(JsonObjectGrammar());
  for (const char* good : {"{}", "{ }", R"({"a":1})", R"({"a": [1, 2.5e3, -0, true, null, "x\n\"\\\u00e9\ud83d\ude00"], "b": {"c": {}}})", "{\n  \"a\": 1,\n  \"b\": []\n}", "{\"é\": \"😀\"}"})
    EXPECT_TRUE(object.Takes(good)) << good;
  for (const char* bad : {"", "[]", "1", "{a:1}", R"({"a":})", R"({"a":1,})", R"({"a":01})", R"({"a":1.})", R"({"a":"\x"})", "{\"a\":\"\n\"}", R"({"a":1}})", R"({"a":"\ud83d"})", R"({"a":"\udc00"})",
                          "{\"a\":\"\xC3\"}", R"({"a" 1})", R"({"a":+1})", R"({"a":tru})", "{   }"})
    EXPECT_FALSE(object.Takes(bad)) << bad;
}

TEST(JsonGrammar, EverySampleParses) {
  Texts object(JsonObjectGrammar());
  int seen = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    const std::string text = object.Sample(seed);
    if (text.empty()) continue;
    ++seen;
    EXPECT_TRUE(base::Json::Parse(text, {.allow_duplicate_keys = true})) << text;
  }
  EXPECT_GT(seen, 20);
}

TEST(JsonGrammar, NestsDeepButNotWithoutEnd) {
  Texts object(JsonObjectGrammar());
  const auto nested = [](int n) {
    std::string s = "{\"a\":";
    for (int i = 0; i < n; ++i) s += '[';
    for (int i = 0; i < n; ++i) s += ']';
    return s + "}";
  };
  EXPECT_TRUE(object.Takes(nested(64)));
  EXPECT_FALSE(object.Begins(nested(3000)));
}

TEST(JsonSchema, ObjectsWithRequiredAndOptionalProperties) {
  Texts t = Texts::Schema(R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"},"c":{"type":"boolean"}},"required":["b"],"additionalProperties":false})");
  for (const char* good : {R"({"b":"x"})", R"({"a":1,"b":"x"})", R"({"b":"x","c":true})", R"({"a": -5, "b": "", "c": false})"}) EXPECT_TRUE(t.Takes(good)) << good;
  for (const char* bad : {"{}", R"({"a":1})", R"({"a":1,"c":true})", R"({"b":"x","a":1})", R"({"b":"x","d":1})", R"({"b":1})", R"({"a":1.5,"b":""})", R"({"b":"x",})", R"({,"b":"x"})"}) EXPECT_FALSE(t.Takes(bad)) << bad;
  Texts optional = Texts::Schema(R"({"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"}}})");
  for (const char* good : {"{}", R"({"a":null})", R"({"b":null})", R"({"a":null,"b":null})"}) EXPECT_TRUE(optional.Takes(good)) << good;
  EXPECT_FALSE(optional.Takes(R"({"a":null "b":null})"));
}

TEST(JsonSchema, ManyPropertiesNeedNoStack) {
  base::Json schema = base::Json::MakeObject();
  schema.Set("type", "object");
  base::Json properties = base::Json::MakeObject(), required = base::Json::MakeArray();
  std::string all = "{";
  for (int i = 0; i < 400; ++i) {
    const std::string name = "p" + std::to_string(i);
    properties.Set(name, *base::Json::Parse(R"({"type":"integer"})"));
    if (i % 2) required.Push(name);
    all += (i ? ",\"" : "\"") + name + "\":1";
  }
  schema.Set("properties", properties);
  schema.Set("required", required);
  EXPECT_TRUE(Texts(JsonSchemaGrammar(schema)).Takes(all + "}"));
}

TEST(JsonSchema, MapsAndFreeObjects) {
  Texts map = Texts::Schema(R"({"type":"object","additionalProperties":{"type":"integer"}})");
  EXPECT_TRUE(map.Takes(R"({"x":1,"y":2})"));
  EXPECT_FALSE(map.Takes(R"({"x":"1"})"));
  EXPECT_TRUE(Texts::Schema(R"({"type":"object"})").Takes(R"({"x":[{}]})"));
  EXPECT_TRUE(Texts::Schema("{}").Takes("[1]"));
  EXPECT_TRUE(Texts::Schema("true").Takes("null"));
  EXPECT_FALSE(Texts::Schema(R"({"type":"object","properties":{}})").Takes(R"({"x":1})"));
}

TEST(JsonSchema, Arrays) {
  Texts t = Texts::Schema(R"({"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":3})");
  EXPECT_FALSE(t.Takes("[1]"));
  EXPECT_TRUE(t.Takes("[1,2]"));
  EXPECT_TRUE(t.Takes("[1, 2, 3]"));
  EXPECT_FALSE(t.Takes("[1,2,3,4]"));
  Texts any = Texts::Schema(R"({"type":"array"})");
  EXPECT_TRUE(any.Takes("[]"));
  EXPECT_TRUE(any.Takes("[1,\"a\",{}]"));
  Texts tuple = Texts::Schema(R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":false})");
  EXPECT_TRUE(tuple.Takes(R"([1,"x"])"));
  EXPECT_FALSE(tuple.Takes("[1]"));
  EXPECT_TRUE(Texts::Schema(R"({"type":"array","maxItems":0})").Takes("[]"));
  EXPECT_FALSE(Texts::Schema(R"({"type":"array","maxItems":0})").Takes("[1]"));
}

TEST(JsonSchema, Strings) {
  Texts t = Texts::Schema(R"({"type":"string","minLength":2,"maxLength":3})");
  EXPECT_FALSE(t.Takes("\"a\""));
  EXPECT_TRUE(t.Takes("\"é😀\"")) << "code points are counted";
  EXPECT_TRUE(t.Takes("\"\\n\\u00e9\\ud83d\\ude00\""));
  EXPECT_FALSE(t.Takes("\"abcd\""));
  Texts pattern = Texts::Schema(R"({"type":"string","pattern":"^[A-Z]{2}-\\d+$"})");
  EXPECT_TRUE(pattern.Takes("\"AB-12\""));
  EXPECT_FALSE(pattern.Takes("\"xAB-12\""));
  Texts inside = Texts::Schema(R"({"type":"string","pattern":"ab"})");
  EXPECT_TRUE(inside.Takes("\"xxabyy\"")) << "a pattern without anchors may match anywhere";
  EXPECT_FALSE(inside.Takes("\"xxayy\""));
  Texts quotes = Texts::Schema(R"({"type":"string","pattern":"^a[\"\\\\\n]b$"})");
  EXPECT_TRUE(quotes.Takes(R"("a\"b")"));
  EXPECT_TRUE(quotes.Takes(R"("a\\b")"));
  EXPECT_TRUE(quotes.Takes(R"("a\nb")"));
  EXPECT_FALSE(quotes.Takes("\"a\"b\""));
  Texts date = Texts::Schema(R"({"type":"string","format":"date"})");
  EXPECT_TRUE(date.Takes("\"2026-02-28\""));
  EXPECT_FALSE(date.Takes("\"2026-13-28\""));
  EXPECT_TRUE(Texts::Schema(R"({"type":"string","format":"date-time"})").Takes("\"2026-02-28T23:59:01.5Z\""));
  EXPECT_TRUE(Texts::Schema(R"({"type":"string","format":"uuid"})").Takes("\"01234567-89ab-cdef-0123-456789abcdef\""));
  EXPECT_FALSE(Texts::Schema(R"({"type":"string","format":"ipv4"})").Takes("\"1.2.3.256\""));
}

TEST(JsonSchema, IntegerBoundsOnEveryNumberAround) {
  for (const auto& [low, high] : std::vector<std::pair<int, int>>{{0, 0}, {0, 9}, {5, 5}, {7, 123}, {-3, 4}, {-120, -99}, {-5, 0}, {98, 1001}, {-1, -1}, {0, 255}, {-200, 200}}) {
    Texts t = Texts::Schema(base::StrCat(R"({"type":"integer","minimum":)", low, R"(,"maximum":)", high, "}"));
    for (int i = -1200; i <= 1200; ++i) ASSERT_EQ(t.Takes(std::to_string(i)), low <= i && i <= high) << i << " in [" << low << ", " << high << "]";
    EXPECT_FALSE(t.Takes("-0"));
    EXPECT_FALSE(t.Takes("00"));
  }
  Texts above = Texts::Schema(R"({"type":"integer","exclusiveMinimum":41.5})");
  EXPECT_FALSE(above.Takes("41"));
  EXPECT_TRUE(above.Takes("42"));
  EXPECT_TRUE(above.Takes("123456789012345"));
}

TEST(JsonSchema, NumberBounds) {
  struct Case { const char* schema; double low, high; bool above, below; };
  for (const Case& c : {Case{R"({"type":"number","minimum":0,"maximum":1})", 0, 1, false, false}, Case{R"({"type":"number","exclusiveMinimum":0})", 0, 1e300, true, false},
                        Case{R"({"type":"number","minimum":-2,"exclusiveMaximum":3})", -2, 3, false, true}, Case{R"({"type":"number","maximum":-1})", -1e300, -1, false, false},
                        Case{R"({"type":"number","exclusiveMinimum":-3,"exclusiveMaximum":-1})", -3, -1, true, true}}) {
    Texts t = Texts::Schema(c.schema);
    for (const char* text : {"0", "0.0", "0.5", "1", "1.0", "1.00", "1.01", "2.999", "3", "3.0", "3.5", "-0.5", "-1", "-1.0", "-1.5", "-2", "-2.0", "-2.5", "-3", "-3.0", "-3.1", "17", "0.001"}) {
      const double v = std::stod(text);
      ASSERT_EQ(t.Takes(text), (c.above ? v > c.low : v >= c.low) && (c.below ? v < c.high : v <= c.high)) << text << " " << c.schema;
    }
  }
}

TEST(JsonSchema, EnumsConstantsAlternativesReferences) {
  Texts e = Texts::Schema(R"({"enum":["red","green",3,null,{"a":1}]})");
  for (const char* good : {"\"red\"", "3", "null", R"({"a":1})"}) EXPECT_TRUE(e.Takes(good)) << good;
  EXPECT_FALSE(e.Takes("\"blue\""));
  Texts typed = Texts::Schema(R"({"type":"string","enum":["a",1]})");
  EXPECT_TRUE(typed.Takes("\"a\""));
  EXPECT_FALSE(typed.Takes("1"));
  EXPECT_TRUE(Texts::Schema(R"({"const":"x\"y"})").Takes(R"("x\"y")"));
  Texts any = Texts::Schema(R"({"anyOf":[{"type":"string"},{"type":"null"}],"title":"T","default":null})");
  EXPECT_TRUE(any.Takes("null"));
  EXPECT_TRUE(any.Takes("\"x\""));
  EXPECT_FALSE(any.Takes("1"));
  Texts types = Texts::Schema(R"({"type":["integer","null"],"minimum":3})");
  EXPECT_TRUE(types.Takes("null"));
  EXPECT_TRUE(types.Takes("3"));
  EXPECT_FALSE(types.Takes("2"));
  Texts tree = Texts::Schema(R"({"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["v","next"]}}})");
  EXPECT_TRUE(tree.Takes(R"({"v":1,"next":{"v":2,"next":null}})"));
  EXPECT_FALSE(tree.Takes(R"({"v":1,"next":{"v":2}})"));
  EXPECT_TRUE(Texts::Schema(R"({"oneOf":[{"type":"integer"},{"type":"string"}]})").Takes("5"));
  EXPECT_TRUE(Texts::Schema(R"({"oneOf":[{"type":"object","properties":{"k":{"const":"a"}},"required":["k"]},{"type":"object","properties":{"k":{"const":"b"}},"required":["k"]}]})").Takes(R"({"k":"b"})"));
  EXPECT_TRUE(Texts::Schema(R"({"properties":{"a":{"type":"integer"}},"required":["a"]})").Takes(R"({"a":1})")) << "a type is inferred from the keywords";
}

TEST(JsonSchema, WhatItCannotHonourIsRefusedWithThePath) {
  const auto refuse = [](const char* schema, const char* what) {
    const auto parsed = base::Json::Parse(schema);
    ASSERT_TRUE(parsed) << schema;
    const auto g = JsonSchemaGrammar(*parsed);
    ASSERT_FALSE(g) << schema;
    EXPECT_NE(g.error().ToString().find(what), std::string::npos) << g.error().ToString();
  };
  refuse(R"({"type":"object","properties":{"a":{"type":"array","uniqueItems":true}}})", "#/properties/a: \"uniqueItems\"");
  refuse(R"({"not":{}})", "\"not\"");
  refuse(R"({"if":{},"then":{}})", "not supported");
  refuse(R"({"type":"object","patternProperties":{}})", "patternProperties");
  refuse(R"({"type":"number","multipleOf":2})", "multipleOf");
  refuse(R"({"type":"number","minimum":0.5})", "minimum");
  refuse(R"({"type":"string","format":"email"})", "email");
  refuse(R"j({"type":"string","pattern":"(?=x)"})j", "look-ahead");
  refuse(R"({"allOf":[{},{}]})", "allOf");
  refuse(R"({"oneOf":[{"type":"integer"},{"type":"number"}]})", "oneOf");
  refuse(R"({"anyOf":[{"type":"string"}],"type":"string"})", "beside");
  refuse(R"({"$ref":"http://x/y"})", "$ref");
  refuse(R"({"$ref":"#/$defs/x"})", "leads nowhere");
  refuse(R"({"$ref":"#"})", "refers to itself");
  refuse(R"({"type":"object","required":["x"]})", "required");
  refuse(R"({"type":"strin"})", "no type");
  refuse(R"({"type":[]})", "empty");
  refuse(R"({"enum":[]})", "enum");
  refuse(R"({"type":"integer","minimum":5,"maximum":4})", "no number");
  refuse(R"({"type":"array","minItems":-1})", "minItems");
  refuse(R"({"type":"array","minItems":3,"maxItems":2})", "maxItems");
  refuse(R"({"type":"frob"})", "frob");
  refuse(R"({"frobnicate":1})", "frobnicate");
  refuse("false", "false");
  refuse("3", "integer");
  refuse(R"({"type":"array","minItems":100000,"items":{"type":"array","minItems":100000}})", "");
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += R"({"type":"array","items":)";
  deep += "{}" + std::string(200, '}');
  refuse(deep.c_str(), "nested deeper");
}

}  // namespace
}  // namespace halfbyte::text
