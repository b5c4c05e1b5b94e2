// Rotary frequencies against transformers' own code (tests/data/model/rope.json, tools/make_rope_golden.py), in both spellings of config.json,
// and against the formulas (model-families 1.2).
#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numbers>
#include <sstream>

#include "unit/model/tiny_model.h"

namespace halfbyte::model {
namespace {

base::Result<Rope> Read(const base::Json& config, int64_t head_dim) { return ReadRope(ConfigReader(config, base::Json()), head_dim); }
Rope Of(const std::string& config, int64_t head_dim) {
  auto rope = Read(*base::Json::Parse(config), head_dim);
  EXPECT_TRUE(rope) << rope.error().ToString();
  return rope ? *rope : Rope{};
}

std::vector<base::Json> GoldenCases() {
  std::ifstream in(HALFBYTE_TEST_DATA "/model/rope.json");
  std::stringstream text;
  text << in.rdbuf();
  return base::Json::Parse(text.str())->as_array();
}

// transformers computes in FP32: its powers are off by some units of the last place.
void ExpectGolden(const base::Json& golden, const Rope& rope) {
  SCOPED_TRACE(golden.Find("name")->as_string());
  const auto& want = golden.Find("inv_freq")->as_array();
  ASSERT_EQ(rope.dims, static_cast<int64_t>(2 * want.size()));
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(rope.inv_freq[i], want[i].as_double(), 1e-6 * want[i].as_double()) << i;
  EXPECT_NEAR(rope.scale, golden.Find("attention_factor")->as_double(), 1e-6);
}

TEST(Rope, EqualsTransformersWithRopeParameters) {
  const auto cases = GoldenCases();
  ASSERT_EQ(cases.size(), 9u);
  for (const base::Json& c : cases) {
    const base::Json& config = *c.Find("config");
    auto rope = Read(config, config.Find("head_dim")->as_int());
    ASSERT_TRUE(rope) << rope.error().ToString();
    ExpectGolden(c, *rope);
  }
}

// The older spelling: rope_theta and partial_rotary_factor at the top, rope_scaling with "type".
TEST(Rope, EqualsTransformersWithRopeScaling) {
  for (const base::Json& c : GoldenCases()) {
    base::Json config = *c.Find("config"), scaling = base::Json::MakeObject();
    for (const auto& [key, value] : c.Find("config")->Find("rope_parameters")->as_object()) {
      if (key == "rope_theta" || key == "partial_rotary_factor") config.Set(key, value);
      else scaling.Set(key == "rope_type" ? "type" : key, value);
    }
    config.Set("rope_scaling", scaling);
    config.Set("rope_parameters", base::Json());
    auto rope = Read(config, config.Find("head_dim")->as_int());
    ASSERT_TRUE(rope) << rope.error().ToString();
    ExpectGolden(c, *rope);
  }
}

TEST(Rope, PlainFrequenciesAreTheFormula) {
  const Rope rope = Of(R"({"rope_theta": 1000000.0, "rope_scaling": null})", 128);
  ASSERT_EQ(rope.dims, 128);
  EXPECT_EQ(rope.scale, 1.0f);
  for (int i = 0; i < 64; ++i) EXPECT_NEAR(rope.inv_freq[static_cast<size_t>(i)], std::pow(1e6, -2.0 * i / 128), 1e-7 * std::pow(1e6, -2.0 * i / 128));
}

TEST(Rope, Llama3IsTheFormula) {
  const Rope plain = Of(R"({"rope_theta": 10000.0})", 64);
  const Rope scaled = Of(R"({"rope_parameters": {"rope_theta": 10000.0, "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 512}})", 64);
  int kept = 0, divided = 0, blended = 0;
  for (size_t i = 0; i < 32; ++i) {
    const double f = plain.inv_freq[i], wavelength = 2 * std::numbers::pi / f;
    double want = f;
    if (wavelength > 512) { want = f / 8; ++divided; }
    else if (wavelength < 128) ++kept;
    else { const double s = (512 / wavelength - 1) / 3; want = (1 - s) * f / 8 + s * f; ++blended; }
    EXPECT_NEAR(scaled.inv_freq[i], want, 1e-6 * want) << i;
  }
  EXPECT_GT(kept, 0);
  EXPECT_GT(divided, 0);
  EXPECT_GT(blended, 0);
}

TEST(Rope, RopeParametersWinOverTheOldFields) {
  const Rope rope = Of(R"({"rope_theta": 10000.0, "rope_scaling": {"type": "linear", "factor": 4.0}, "rope_parameters": {"rope_theta": 500.0, "rope_type": "default"}})", 32);
  EXPECT_NEAR(rope.inv_freq[1], std::pow(500.0, -2.0 / 32), 1e-6);
}

TEST(Rope, TheOriginalLengthMayStandAtTheTop) {
  const char* inside = R"({"max_position_embeddings": 131072, "rope_parameters": {"rope_theta": 10000.0, "rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096}})";
  const char* top = R"({"max_position_embeddings": 131072, "original_max_position_embeddings": 4096, "rope_theta": 10000.0, "rope_scaling": {"rope_type": "yarn", "factor": 32.0}})";
  const char* no_factor = R"({"max_position_embeddings": 131072, "rope_theta": 10000.0, "rope_scaling": {"rope_type": "yarn", "factor": null, "original_max_position_embeddings": 4096}})";
  EXPECT_EQ(Of(top, 64).inv_freq, Of(inside, 64).inv_freq);
  EXPECT_EQ(Of(no_factor, 64).inv_freq, Of(inside, 64).inv_freq);  // 131072 / 4096
}

TEST(Rope, Errors) {
  auto error = [](const char* config, int64_t head_dim = 64) { return ErrorOf(Read(*base::Json::Parse(config), head_dim)); };
  EXPECT_NE(error(R"({"rope_scaling": {"rope_type": "longrope", "factor": 4.0}})").find("rope type \"longrope\" (known: default, linear, llama3, yarn)"), std::string::npos);
  EXPECT_NE(error(R"({"rope_scaling": {"rope_type": "linear"}})").find("factor"), std::string::npos);
  EXPECT_NE(error(R"({"rope_theta": 0})").find("rope_theta"), std::string::npos);
  EXPECT_NE(error(R"({"partial_rotary_factor": 2.0})").find("128 rotated dimensions of a head of 64"), std::string::npos);
  EXPECT_NE(error(R"({"rope_theta": "x"})").find("rope_theta"), std::string::npos);
  // A division by zero or a negative stretch would give infinities in silence.
  EXPECT_NE(error(R"({"rope_scaling": {"rope_type": "llama3", "factor": 0}})").find("factor"), std::string::npos);
  EXPECT_NE(error(R"({"rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4}})").find("freq_factor"), std::string::npos);
  EXPECT_NE(error(R"({"rope_scaling": {"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 0}})").find("original_max_position_embeddings"), std::string::npos);
}

}  // namespace
}  // namespace halfbyte::model
