// The truth table of user case T09 and the matching rules of the reference (reference-behaviour 4.2, 4.3).
#include "quant/layer_selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace halfbyte::quant {
namespace {

using testing::HasSubstr;

LayerSelection List(const std::vector<std::string>& patterns) { return *LayerSelection::Make(patterns, "config.json ignore", PatternSyntax::kPatterns); }
LayerSelection Paths(const std::vector<std::string>& patterns) { return *LayerSelection::Make(patterns, "--ignore-layers", PatternSyntax::kPaths); }

class TruthTable : public testing::Test {
 protected:
  LayerSelection selection_ = List({"lm_head", "model.layers.0.self_attn*", "*.mlp.gate", "re:.*layers\\.1\\.mlp\\.experts\\..*", "model.language_model.layers.2.mlp.experts.*", "model.layers.3.self_attn.q_proj"});
};

TEST_F(TruthTable, Excluded) {
  for (const char* module : {"lm_head", "model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.qkv_proj", "layers.0.self_attn.o_proj", "model.layers.5.mlp.gate",
                             "model.layers.1.mlp.experts.7.down_proj", "model.layers.2.mlp.experts.0.up_proj", "model.language_model.layers.2.mlp.experts.3.down_proj",
                             "language_model.model.layers.2.mlp.experts.3.down_proj", "language_model.lm_head", "model.layers.2.mlp.experts", "model.layers.3.self_attn.q_proj"})
    EXPECT_TRUE(selection_.Contains(module)) << module;
}
TEST_F(TruthTable, NotExcluded) {
  for (const char* module : {"model.layers.5.mlp.gate_proj", "model.layers.5.mlp.experts.0.gate_proj", "model.layers.10.mlp.experts.0.up_proj", "model.layers.11.mlp.experts.0.up_proj",
                             "model.layers.20.mlp.experts.0.up_proj", "model.layers.3.self_attn.k_proj", "model.layers.3.self_attn.v_proj", "model.layers.20.mlp.experts", "model.layers.4.self_attn.qkv_proj"})
    EXPECT_FALSE(selection_.Contains(module)) << module;
}
TEST_F(TruthTable, AFusedMatrixOfWhichSomePartsAreListed) {
  EXPECT_EQ(selection_.Covers("model.layers.3.self_attn.qkv_proj"), Coverage::kSome);
  EXPECT_EQ(selection_.Covers("model.layers.0.self_attn.qkv_proj"), Coverage::kAll);
  EXPECT_EQ(selection_.Covers("model.layers.4.self_attn.qkv_proj"), Coverage::kNone);
}
TEST_F(TruthTable, EveryPatternCountsItsModules) {
  for (const char* module : {"lm_head", "model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.k_proj", "model.layers.1.mlp.experts.0.up_proj", "model.layers.9.mlp.gate"}) selection_.Contains(module);
  std::vector<int64_t> counts;
  for (const PatternMatches& m : selection_.Matches()) { counts.push_back(m.matches); EXPECT_EQ(m.from, "config.json ignore"); }
  EXPECT_THAT(counts, testing::ElementsAre(1, 2, 1, 1, 0, 0));
  EXPECT_EQ(selection_.Matches()[4].pattern, "model.language_model.layers.2.mlp.experts.*");
}

TEST(Paths, WholeComponentsOnly) {
  LayerSelection s = Paths({"model.layers.40", "shared_expert", "layers.1.mlp."});
  for (const char* module : {"model.layers.40", "model.layers.40.mlp.experts", "layers.40.self_attn.q_proj", "model.layers.3.mlp.shared_expert.up_proj", "model.layers.1.mlp.experts.0.up_proj"})
    EXPECT_TRUE(s.Contains(module)) << module;
  for (const char* module : {"model.layers.4", "model.layers.400.mlp", "model.layers.3.mlp.shared_expert_gate", "model.layers.11.mlp.gate", "model.layers.1.mlp_norm"}) EXPECT_FALSE(s.Contains(module)) << module;
}
TEST(Paths, KnowNoPatterns) {
  LayerSelection s = Paths({"model.layers.*", "re:.*"});
  EXPECT_FALSE(s.Contains("model.layers.1.mlp"));
}
TEST(Paths, OneExpertMeansAllOfItsLayer) {
  LayerSelection s = Paths({"model.layers.3.mlp.experts.5.gate_proj"});
  EXPECT_TRUE(s.Contains("model.layers.3.mlp.experts"));
  EXPECT_TRUE(s.Contains("model.layers.3.mlp.experts.0.up_proj"));
  EXPECT_FALSE(s.Contains("model.layers.13.mlp.experts"));
  EXPECT_FALSE(s.Contains("model.layers.3.mlp.shared_experts.up_proj"));
  EXPECT_FALSE(s.Contains("model.layers.3.mlp.gate"));
}

TEST(Patterns, AGlobMayMeanOneComponent) {
  EXPECT_TRUE(List({"mtp*"}).Contains("mtp.layers.0.mlp.experts"));
  EXPECT_TRUE(List({"*_gate"}).Contains("model.layers.0.mlp.shared_expert_gate"));
  EXPECT_TRUE(List({"gate"}).Contains("model.layers.0.mlp.gate"));
  EXPECT_FALSE(List({"gate"}).Contains("model.layers.0.mlp.gate_proj"));
}
TEST(Patterns, FusedNamesInAListStandForTheirParts) {
  LayerSelection s = List({"model.layers.0.self_attn.qkv_proj", "model.layers.0.mlp.gate_up_proj", "model.layers.1.self_attn.fused_qkv_a_proj_with_mqa"});
  for (const char* module : {"model.layers.0.self_attn.k_proj", "model.layers.0.self_attn.qkv_proj", "model.layers.0.mlp.up_proj", "model.layers.1.self_attn.q_a_proj", "model.layers.1.self_attn.kv_a_proj_with_mqa"})
    EXPECT_TRUE(s.Contains(module)) << module;
  EXPECT_FALSE(s.Contains("model.layers.0.self_attn.o_proj"));
}
TEST(Patterns, BadRegularExpressionsAreQuoted) {
  auto bad = LayerSelection::Make({"re:("}, "config.json ignore", PatternSyntax::kPatterns);
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().ToString(), HasSubstr("\"re:(\" is not a regular expression"));
}
TEST(Patterns, HostilePatternsEnd) {
  auto start = std::chrono::steady_clock::now();
  LayerSelection s = List({"re:(a+)+$", "*a*a*a*a*a*a*a*a*b", "", "re:"});
  s.Contains("model." + std::string(200, 'a') + "c");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

}  // namespace
}  // namespace halfbyte::quant
