// Conversion through the pipeline equals the scalar specification (numerics/weight_quantizer.h) for every source type; T04 and T05; refusals.
#include <gmock/gmock.h>

#include <cmath>

#include "numerics/bf16.h"
#include "numerics/fp16.h"
#include "quant/convert.h"
#include "unit/quant/load_support.h"

namespace halfbyte::quant {
namespace {

using numerics::WeightContract;
using testing::HasSubstr;

constexpr const char* kStem = "model.layers.0.mlp.experts.0.";

std::string As(const std::string& dtype, const std::vector<float>& values) {
  std::string out;
  for (float v : values) {
    const uint16_t bits = dtype == "BF16" ? numerics::FloatToBf16(v) : numerics::FloatToFp16(v);
    if (dtype == "F32") out.append(reinterpret_cast<const char*>(&v), 4);
    else out.append(reinterpret_cast<const char*>(&bits), 2);
  }
  return out;
}

// One expert: gate and up [f, h], down [h, f].
HandMade Expert(const std::string& dtype, int64_t f, int64_t h, const std::vector<float>& gate, const std::vector<float>& up, const std::vector<float>& down) {
  HandMade m;
  const std::string wide = base::StrCat("[", f, ",", h, "]"), tall = base::StrCat("[", h, ",", f, "]");
  m.tensors = {{base::StrCat(kStem, "gate_proj.weight"), dtype, wide, As(dtype, gate)},
               {base::StrCat(kStem, "up_proj.weight"), dtype, wide, As(dtype, up)},
               {base::StrCat(kStem, "down_proj.weight"), dtype, tall, As(dtype, down)}};
  m.ExpectMatrix(TensorRole::kExpertGate, f, h);
  m.ExpectMatrix(TensorRole::kExpertUp, f, h);
  m.ExpectMatrix(TensorRole::kExpertDown, h, f);
  return m;
}

std::vector<float> Noise(int64_t n, uint32_t seed, float size) {
  std::vector<float> v;
  for (int64_t i = 0; i < n; ++i) v.push_back((static_cast<float>((seed = seed * 1664525u + 1013904223u) >> 8) / 8388608.0f - 1.0f) * size);
  return v;
}

void ExpectSpecified(const test::RecordedMatrix& have, const std::vector<float>& values, int64_t rows, int64_t cols, float amax) {
  const numerics::GlobalScale scale = numerics::GlobalScaleFor(WeightContract::Online(), amax);
  std::vector<uint8_t> codes(static_cast<size_t>(rows * cols / 2)), scales(static_cast<size_t>(rows * cols / 16));
  numerics::QuantizeMatrix(WeightContract::Online(), values.data(), rows, cols, scale, codes.data(), scales.data());
  ASSERT_EQ(have.format, Format::Nvfp4());
  EXPECT_EQ(have.elements, std::string(codes.begin(), codes.end()));
  EXPECT_EQ(have.block_scales, std::string(scales.begin(), scales.end()));
  EXPECT_EQ(have.outer, std::vector<float>{scale.ws2});
}

TEST(LoadConversion, EverySourceTypeIsQuantizedFromTheStatedValues) {
  const std::vector<float> gate = Noise(32 * 48, 1, 0.3f), up = Noise(32 * 48, 2, 0.1f), down = Noise(48 * 32, 3, 0.7f);
  for (const char* dtype : {"BF16", "F16", "F32"}) {
    SCOPED_TRACE(dtype);
    const auto loaded = Expert(dtype, 32, 48, gate, up, down).Load();
    ASSERT_TRUE(loaded) << loaded.error().ToString();
    // FP16 counts as it is; FP32 is rounded to BF16 first.
    auto seen = [&](std::vector<float> v) {
      for (float& x : v) x = dtype == std::string("F16") ? numerics::Fp16ToFloat(numerics::FloatToFp16(x)) : numerics::RoundToBf16(x);
      return v;
    };
    auto amax = [](const std::vector<float>& v) { float a = 0; for (float x : v) a = std::max(a, std::fabs(x)); return a; };
    const std::vector<float> g = seen(gate), u = seen(up), d = seen(down);
    const float shared = std::max(amax(g), amax(u));
    ExpectSpecified(loaded->matrices.at(Id(TensorRole::kExpertGate)), g, 32, 48, shared);
    ExpectSpecified(loaded->matrices.at(Id(TensorRole::kExpertUp)), u, 32, 48, shared);
    ExpectSpecified(loaded->matrices.at(Id(TensorRole::kExpertDown)), d, 48, 32, amax(d));
    EXPECT_EQ(loaded->stats.parameters_converted, 3 * 32 * 48);
  }
}

// T05: 2688 and 0.005 in one row. The pipeline gives the specification's bytes, no scale is NaN, and the huge block does not flush the small ones.
TEST(LoadConversion, HugeAndTinyBlocksInOneRow) {
  std::vector<float> gate(16 * 64, 0.0f);
  gate[0] = 2688;
  for (int i = 0; i < 16; ++i) gate[static_cast<size_t>(16 + i)] = 0.005f, gate[static_cast<size_t>(48 + i)] = 0.02f;
  for (float& v : gate) v = numerics::RoundToBf16(v);
  const std::vector<float> zero(16 * 64, 0.0f);
  const auto loaded = Expert("BF16", 16, 64, gate, zero, zero).Load();
  ASSERT_TRUE(loaded) << loaded.error().ToString();
  const test::RecordedMatrix& m = loaded->matrices.at(Id(TensorRole::kExpertGate));
  ExpectSpecified(m, gate, 16, 64, 2688);
  EXPECT_EQ(m.outer[0], 1.0f);
  EXPECT_EQ(static_cast<uint8_t>(m.block_scales[0]), 0x7E);
  EXPECT_EQ(m.elements[0] & 0xF, 7);
  for (char s : m.block_scales) EXPECT_NE(s & 0x7F, 0x7F);
  EXPECT_NE(m.elements.substr(24, 8), std::string(8, '\0'));  // 0.02 survives
}

// T04: an expert of zeros has a scale of 1.0, codes 0 and no NaN byte.
TEST(LoadConversion, AllZeroExpert) {
  const std::vector<float> zero(16 * 32, 0.0f);
  const auto loaded = Expert("BF16", 16, 32, zero, zero, zero).Load();
  ASSERT_TRUE(loaded) << loaded.error().ToString();
  for (TensorRole role : {TensorRole::kExpertGate, TensorRole::kExpertUp, TensorRole::kExpertDown}) {
    const test::RecordedMatrix& m = loaded->matrices.at(Id(role));
    EXPECT_EQ(m.outer, std::vector<float>{1.0f});
    EXPECT_EQ(m.elements, std::string(16 * 16, '\0'));
    for (char s : m.block_scales) EXPECT_NE(s & 0x7F, 0x7F);
  }
}

TEST(LoadConversion, NanAndInfinityAreRefusedWithLayerExpertTensorAndCount) {
  std::vector<float> gate = Noise(16 * 32, 1, 1), up = Noise(16 * 32, 2, 1), down = Noise(16 * 32, 3, 1);
  up[5] = std::nanf("");
  up[99] = INFINITY;
  up[100] = -INFINITY;
  for (const char* dtype : {"BF16", "F16", "F32"}) {
    HandMade m = Expert(dtype, 16, 32, gate, up, down);
    EXPECT_THAT(m.Error(), HasSubstr("tensor model.layers.0.mlp.experts.0.up_proj.weight (layer 0, expert 0, experts.up): 1 NaN and 2 infinite weights")) << dtype;
    m.plan.mode = QuantMode::kNone;
    EXPECT_THAT(m.Error(), HasSubstr("tensor model.layers.0.mlp.experts.0.up_proj.weight (layer 0, expert 0, experts.up): 3 NaN or infinite weights")) << dtype;
  }
}

// FP8 rows whose amax / 448 is below every FP32 number: codes of zero, not 0/0.
TEST(LoadConversion, Fp8RowsOfSubnormals) {
  const std::vector<float> x = {1e-44f, 0.0f, -1e-44f, 0.0f, /* a row as it should be */ 448.0f, -1.0f, 0.0f, 2.0f};
  uint8_t codes[8];
  float scales[2];
  QuantizeRowsFp8({x.data(), tensor::DType::kF32, 2, 4}, codes, scales);
  EXPECT_THAT(codes, testing::ElementsAre(0x00, 0x00, 0x80, 0x00, 0x7E, 0xB8, 0x00, 0x40));
  EXPECT_THAT(scales, testing::ElementsAre(1.0f, 1.0f));
}

TEST(LoadConversion, ColumnsNotAMultipleOf16AreRefusedByName) {
  const std::vector<float> w(24 * 32, 1.0f);
  HandMade m = Expert("BF16", 24, 32, w, w, w);  // down [32, 24]
  EXPECT_THAT(m.Error(), testing::AllOf(HasSubstr("model.layers.0.mlp.experts.0.down_proj.weight"), HasSubstr("24 columns are not a multiple of 16"), HasSubstr("--ignore-layers")));
  m.plan.mode = QuantMode::kNone;
  EXPECT_TRUE(m.Load());
}

TEST(LoadConversion, PlainMatricesBecomeWhatTheBackendComputesIn) {
  // 1 + 2^-10 is exact in FP16 and FP32, not in BF16.
  const std::vector<float> odd(16 * 32, 1.0f + 0x1p-10f), even(16 * 32, 1.5f);
  for (auto [plain, changed] : {std::pair{tensor::DType::kBF16, int64_t{16 * 32}}, {tensor::DType::kF32, int64_t{0}}})
    for (const char* dtype : {"F16", "F32"}) {
      HandMade m = Expert(dtype, 16, 32, odd, even, even);
      m.plan.mode = QuantMode::kNone;
      m.plan.plain = plain;
      const auto loaded = m.Load();
      ASSERT_TRUE(loaded) << loaded.error().ToString();
      EXPECT_EQ(loaded->matrices.at(Id(TensorRole::kExpertGate)).format, Format::Plain(plain));
      EXPECT_EQ(loaded->stats.changed_by_rounding, changed) << dtype;
    }
}

}  // namespace
}  // namespace halfbyte::quant
