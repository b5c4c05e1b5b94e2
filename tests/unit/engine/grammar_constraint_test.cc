#include "engine/grammar_constraint.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "engine/engine.h"
#include "fake_model.h"
#include "text/json_schema.h"

namespace halfbyte::engine {
namespace {

// Whatever the model wants, what comes out satisfies the schema and ends with the end token; alone and with neighbours, greedy and sampled.
TEST(GrammarConstraint, EveryAnswerSatisfiesTheSchema) {
  std::vector<std::string> vocabulary = {""};  // 0 is the model's end token
  for (const char* t : {"{", "}", "\"", "a", "b", ":", ",", "1", "2", "tr", "ue", "false", "{\"a\":", "\"b\"", ": ", " ", "\n", "true}", "xyz", "-", "0"}) vocabulary.push_back(t);
  const int64_t vocab = static_cast<int64_t>(vocabulary.size());
  const auto schema = *base::Json::Parse(R"({"type":"object","properties":{"a":{"type":"integer","minimum":-2,"maximum":21},"b":{"type":"boolean"}},"required":["a","b"]})");
  auto automaton = std::make_shared<text::GrammarAutomaton>(*text::JsonSchemaGrammar(schema), std::make_shared<text::TokenTrie>(vocabulary), std::vector<int32_t>{0});
  auto engine = Engine::Create(std::make_unique<FakeModel>(StateGeometry{.block_tokens = 16, .blocks = 40}, vocab), EngineOptions{.max_batch = 4});
  for (int i = 0; i < 60; ++i) {
    Request r;
    r.prompt = {i % 20, 3};
    r.max_tokens = 200;
    r.sampling.temperature = i % 2 ? 1.0f : 0.0f;
    r.sampling.seed = static_cast<uint64_t>(i);
    r.constraint = std::make_shared<GrammarConstraint>(automaton);
    const auto got = engine->Generate(r);
    ASSERT_TRUE(got);
    ASSERT_EQ(got->finish.reason, FinishReason::kStop) << (got->finish.error ? got->finish.error->ToString() : "");
    std::string text;
    for (const int32_t t : got->tokens) text += vocabulary[static_cast<size_t>(t)];
    const auto json = base::Json::Parse(text);
    ASSERT_TRUE(json) << text;
    EXPECT_EQ(json->as_object().size(), 2u) << text;
    EXPECT_TRUE(json->Find("a")->as_int() >= -2 && json->Find("a")->as_int() <= 21) << text;
    EXPECT_TRUE(json->Find("b")->is_bool()) << text;
  }
}

}  // namespace
}  // namespace halfbyte::engine
