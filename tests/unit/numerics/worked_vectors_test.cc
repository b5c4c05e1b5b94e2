// The worked vectors of reference-behaviour.md 1.14: tensors A to D under the load-time contract and under the plain exact form.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "numerics/distortion.h"
#include "numerics/weight_quantizer.h"
#include "unit/numerics/test_matrices.h"

namespace halfbyte::numerics {
namespace {

using namespace test;

struct Expected {
  const char* pick;  // "4", "6", or "-" for a zero block
  const char* scale;
  const char* bytes;  // memory order
  const char* plain_scale;
  const char* plain_bytes;
};

std::string ByteDigits(const Nvfp4Block& block) {
  std::string s;
  for (uint8_t b : block.codes) s += HexByte(b);
  for (char& c : s) c = static_cast<char>(std::tolower(c));
  return s;
}

std::vector<float> Rounded(std::vector<float> x) {
  for (float& v : x) v = RoundToBf16(v);
  return x;
}

void Check(const std::vector<float>& x, uint32_t ws2_bits, uint32_t gs_bits, const std::vector<Expected>& want) {
  const AmaxResult amax = Amax(x);
  const GlobalScale scale = GlobalScaleFor(WeightContract::Online(), amax.amax);
  EXPECT_EQ(Bits(scale.ws2), ws2_bits);
  const float gs = 1.0f / scale.ws2;
  EXPECT_EQ(Bits(gs), gs_bits);
  ASSERT_EQ(x.size(), want.size() * kBlock);
  for (size_t b = 0; b < want.size(); ++b) {
    const BlockInput in(x.data() + b * kBlock, kBlock);
    const Nvfp4Block searched = QuantizeBlock(WeightContract::Online(), in, scale);
    const Nvfp4Block plain = QuantizeBlock(WeightContract::Plain(), in, scale);
    const bool four = EvaluateFourOverSix(in, gs, ErrorNorm::kMse, ErrorForm::kScaled).PicksFour();
    EXPECT_EQ(BlockAmax(in) == 0 ? "-" : four ? "4" : "6", std::string(want[b].pick)) << "block " << b;
    EXPECT_EQ(HexByte(searched.scale) + " " + ByteDigits(searched), std::string(want[b].scale) + " " + want[b].bytes) << "block " << b;
    EXPECT_EQ(HexByte(plain.scale) + " " + ByteDigits(plain), std::string(want[b].plain_scale) + " " + want[b].plain_bytes) << "block " << b;
  }
}

constexpr const char* kZeros = "0000000000000000";

TEST(WorkedVector, A) {
  std::vector<float> x;
  for (int i = 0; i < 16; ++i) x.push_back(static_cast<float>(i - 8) / 8);
  for (double v : {.5, .4, .3, .2, .1, .05, -.5, -.4, -.3, -.2, -.1, -.05, .45, .35, .25, .15}) x.push_back(static_cast<float>(v));
  Check(Rounded(x), 0x39C30C31, 0x45280000,
        {{"6", "7E", "ffeecdab20436576", "7E", "ffeecdab20436576"}, {"4", "7A", "563512debd9a5634", "76", "674612efce9a6745"}});
}

TEST(WorkedVector, B) {
  std::vector<float> x(2 * 48, 0.0f);
  for (int i = 0; i < 16; ++i) x[i] = static_cast<float>(0.01 * i);
  x[32] = 1e-6f;
  x[48] = 3;
  for (int i = 0; i < 16; ++i) x[48 + 16 + i] = static_cast<float>(3.0 * (15 - i) / 15);
  for (int i = 0; i < 16; ++i) x[48 + 32 + i] = -1.7f;
  Check(Rounded(x), 0x3A924925, 0x445FFFFF,
        {{"4", "60", "1021324354556566", "5B", "1022435465667677"},
         {"-", "00", kZeros, "00", kZeros},
         {"6", "00", "0700000000000000", "00", "0700000000000000"},  // underflow: code 7 under scale 0
         {"6", "7E", "0700000000000000", "7E", "0700000000000000"},
         {"6", "7E", "7767665645342201", "7E", "7767665645342201"},
         {"6", "78", "ffffffffffffffff", "78", "ffffffffffffffff"}});
}

TEST(WorkedVector, C) { Check(std::vector<float>(16, 0.0f), 0x3F800000, 0x3F800000, {{"-", "00", kZeros, "00", kZeros}}); }

TEST(WorkedVector, D) {
  std::vector<float> x(16, 2000.0f);
  x[0] = 2688, x[1] = -0.0f, x[2] = 1, x[3] = -1;
  Check(Rounded(x), 0x3F800000, 0x3F800000, {{"6", "7E", "8780666666666666", "7E", "8780666666666666"}});
}

// Fact 1: the order of 1.2 matters: 1/(amax/2688) is not 2688/amax for a quarter of all amax values.
TEST(WorkedVector, Fact1OrderOfOperations) {
  int differ = 0, n = 0;
  for (uint32_t e = 100; e < 140; ++e) {
    for (uint32_t m = 0; m < 128; ++m, ++n) {
      const float amax = FromBits((e << 23) | (m << 16));
      differ += 1.0f / OnlineWs2(amax) != k2688 / amax;
    }
  }
  EXPECT_NEAR(static_cast<double>(differ) / n, 0.26, 0.01);
}

// Fact 2: 64 x 1024 Gaussian weights: relative RMSE 0.0870 and 0.0947; the 4-candidate wins in 44 % of the blocks.
TEST(WorkedVector, Fact2Distortion) {
  const std::vector<float> x = GaussianBf16(64 * 1024, 0.02f, 1);
  std::vector<uint8_t> codes(x.size() / 2), scales(x.size() / 16);
  std::vector<float> decoded(x.size());
  const auto error = [&](const WeightContract& contract) {
    const GlobalScale scale = GlobalScaleFor(contract, Amax(x).amax);
    QuantizeMatrix(contract, x.data(), 64, 1024, scale, codes.data(), scales.data());
    DecodeMatrix(codes.data(), scales.data(), scale.ws2, 64, 1024, decoded.data());
    return Measure(decoded, x).relative_rmse;
  };
  EXPECT_NEAR(error(WeightContract::Online()), 0.0870, 0.001);
  EXPECT_NEAR(error(WeightContract::Plain()), 0.0947, 0.001);
  const float gs = 1.0f / OnlineWs2(Amax(x).amax);
  int fours = 0;
  for (size_t b = 0; b < x.size() / 16; ++b) {
    fours += EvaluateFourOverSix(BlockInput(x.data() + b * 16, 16), gs, ErrorNorm::kMse, ErrorForm::kScaled).PicksFour();
  }
  EXPECT_NEAR(fours / 4096.0, 0.44, 0.03);
}

}  // namespace
}  // namespace halfbyte::numerics
