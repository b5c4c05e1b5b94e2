// Scales that a load could lose in silence: each of these gives a model that runs and is wrong, so each is refused by name.
#include <gmock/gmock.h>

#include "unit/quant/load_support.h"

namespace halfbyte::quant {
namespace {

using checkpoint::FloatBytes;
using checkpoint::StackedLayout;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kGate = "model.layers.0.mlp.experts.0.gate_proj";

HandMade OneGate(const std::string& dtype, const std::string& shape, const std::string& data, const std::string& scale_dtype, const std::string& scale_shape, const std::string& scales) {
  HandMade m;
  m.tensors = {{std::string(kGate) + ".weight", dtype, shape, data}, {std::string(kGate) + ".weight_scale", scale_dtype, scale_shape, scales}};
  m.ExpectMatrix(TensorRole::kExpertGate, 16, 32);
  return m;
}
HandMade Nvfp4Gate(const std::string& scales) {
  HandMade m = OneGate("U8", "[16,16]", std::string(16 * 16, '\x22'), "F8_E4M3", "[16,2]", scales);
  m.tensors.push_back({std::string(kGate) + ".weight_scale_2", "F32", "[]", FloatBytes({0.5f})});
  return m;
}

// The FP32 scale of NVFP4 beside a format that has no place for it.
TEST(LoadLostScales, ASecondScaleBesideFp8OrMxfp4) {
  HandMade fp8 = OneGate("F8_E4M3", "[16,32]", std::string(16 * 32, '\x38'), "F32", "[]", FloatBytes({2.0f}));
  HandMade mxfp4 = OneGate("U8", "[16,16]", std::string(16 * 16, '\x22'), "U8", "[16,1]", std::string(16, '\x7F'));
  for (const char* second : {".weight_scale_2", ".weight_global_scale"})
    for (HandMade m : {fp8, mxfp4}) {
      ASSERT_TRUE(m.Load()) << m.Load().error().ToString();
      m.tensors.push_back({std::string(kGate) + second, "F32", "[]", FloatBytes({0.5f})});
      EXPECT_THAT(m.Error(), AllOf(HasSubstr("no place"), HasSubstr(std::string(kGate) + second)));
    }
}

TEST(LoadLostScales, NegativeAndNanBlockScales) {
  ASSERT_TRUE(Nvfp4Gate(std::string(32, '\x38')).Load());
  for (char bad : {'\x7F', '\x80', '\xB8', '\xFF'}) {
    std::string scales(32, '\x38');
    scales[5] = bad;
    EXPECT_THAT(Nvfp4Gate(scales).Error(), AllOf(HasSubstr("layer 0, expert 0"), HasSubstr(std::string(kGate) + ".weight_scale"), HasSubstr("1 block scales are NaN or negative")));
  }
}

// Nothing is lost here, but the report says how many activation scales a mode has no use for.
TEST(LoadLostScales, ActivationScalesThatAModeDoesNotReadAreCounted) {
  HandMade m = Nvfp4Gate(std::string(32, '\x38'));
  m.tensors.push_back({std::string(kGate) + ".input_scale", "F32", "[]", FloatBytes({0.5f})});
  for (auto [mode, discarded] : {std::pair{QuantMode::kNone, 1}, {QuantMode::kW4A16, 1}, {QuantMode::kNvfp4Online, 1}, {QuantMode::kModeloptFp4, 0}}) {
    m.plan.mode = mode;
    const auto loaded = m.Load();
    ASSERT_TRUE(loaded) << loaded.error().ToString();
    EXPECT_EQ(loaded->discarded, discarded) << ModeName(mode);
  }
}

// One FP32 scale an expert, or one each for gate and up: any other count leaves some of them unread.
TEST(LoadLostScales, StackedScalarsOfTheWrongCount) {
  auto stacked = [](const std::string& shape, int64_t n) {
    HandMade m;
    m.tensors = {{"model.layers.0.mlp.experts.gate_up_proj", "U8", "[2,32,16]", std::string(2 * 32 * 16, '\x22')},
                 {"model.layers.0.mlp.experts.gate_up_proj_weight_scale", "F8_E4M3", "[2,32,2]", std::string(2 * 32 * 2, '\x38')},
                 {"model.layers.0.mlp.experts.gate_up_proj_weight_scale_2", "F32", shape, FloatBytes(std::vector<float>(static_cast<size_t>(n), 0.5f))}};
    m.rules = {{"model.layers.{L}.mlp.experts.gate_up_proj", TensorRole::kExpertGateUp, StackedLayout::kRows}};
    for (int e : {0, 1}) m.ExpectMatrix(TensorRole::kExpertGate, 16, 32, e), m.ExpectMatrix(TensorRole::kExpertUp, 16, 32, e);
    return m;
  };
  for (auto [shape, n] : {std::pair{"[]", 1}, {"[2]", 2}, {"[2,1]", 2}, {"[2,2]", 4}}) {
    const auto loaded = stacked(shape, n).Load();
    ASSERT_TRUE(loaded) << shape << ": " << loaded.error().ToString();
  }
  for (auto [shape, n] : {std::pair{"[3]", 3}, {"[4]", 4}, {"[1,2]", 2}, {"[3,2]", 6}, {"[2,3]", 6}})
    EXPECT_THAT(stacked(shape, n).Error(), AllOf(HasSubstr("gate_up_proj_weight_scale_2"), HasSubstr("one value is wanted"))) << shape;
}

TEST(LoadLostScales, ADownProjectionHasNoSecondScalar) {
  HandMade m;
  m.tensors = {{"model.layers.0.mlp.experts.down_proj", "U8", "[2,16,16]", std::string(2 * 16 * 16, '\x22')},
               {"model.layers.0.mlp.experts.down_proj_weight_scale", "F8_E4M3", "[2,16,2]", std::string(2 * 16 * 2, '\x38')},
               {"model.layers.0.mlp.experts.down_proj_weight_scale_2", "F32", "[2,2]", FloatBytes({1, 2, 3, 4})}};
  m.rules = {{"model.layers.{L}.mlp.experts.down_proj", TensorRole::kExpertDown, StackedLayout::kRows}};
  for (int e : {0, 1}) m.ExpectMatrix(TensorRole::kExpertDown, 16, 32, e);
  EXPECT_THAT(m.Error(), HasSubstr("down_proj_weight_scale_2"));
}

}  // namespace
}  // namespace halfbyte::quant
