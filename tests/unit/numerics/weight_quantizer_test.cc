// User cases T04, T05 and T06 as far as they concern the numbers, the scale rules at their edges, and the published error figures.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "numerics/distortion.h"
#include "numerics/fp8_dequantizer.h"
#include "numerics/weight_quantizer.h"
#include "unit/numerics/test_matrices.h"

namespace halfbyte::numerics {
namespace {

using namespace test;

struct Quantized {
  GlobalScale scale;
  std::vector<uint8_t> codes, scales;
  std::vector<float> Decoded(int64_t cols) const {
    std::vector<float> out(codes.size() * 2);
    DecodeMatrix(codes.data(), scales.data(), scale.ws2, static_cast<int64_t>(out.size()) / cols, cols, out.data());
    return out;
  }
};

Quantized Quantize(const WeightContract& contract, const std::vector<float>& x, int64_t cols, float amax = -1) {
  Quantized q{.scale = GlobalScaleFor(contract, amax < 0 ? Amax(x).amax : amax), .codes = std::vector<uint8_t>(x.size() / 2), .scales = std::vector<uint8_t>(x.size() / 16)};
  QuantizeMatrix(contract, x.data(), static_cast<int64_t>(x.size()) / cols, cols, q.scale, q.codes.data(), q.scales.data());
  return q;
}

const std::vector<WeightContract> kAllContracts = {
    WeightContract::Online(), WeightContract::Plain(), WeightContract::Modelopt(Flavour::kCuda), WeightContract::Modelopt(Flavour::kCpu),
    WeightContract::ModeloptStatic(Flavour::kCuda), WeightContract::ModeloptFourOverSix(Flavour::kCuda),
    WeightContract::ModeloptFourOverSix(Flavour::kCpu), WeightContract::ModeloptSweep(Flavour::kCuda)};

// T04: an all-zero expert, in every contract: finite positive ws2, zero codes, no NaN byte, decodes to exactly 0.
TEST(UserCase, T04AllZeroExpert) {
  const std::vector<float> zero(16 * 32, 0.0f);
  for (const WeightContract& contract : kAllContracts) {
    const Quantized q = Quantize(contract, zero, 32);
    EXPECT_EQ(q.scale.ws2, 1.0f);
    for (uint8_t c : q.codes) EXPECT_EQ(c, 0);
    for (uint8_t s : q.scales) EXPECT_FALSE(IsE4m3Nan(s));
    for (float v : q.Decoded(32)) EXPECT_EQ(v, 0.0f);
    // Quantizing the decoded values again gives the same bytes.
    const Quantized again = Quantize(contract, q.Decoded(32), 32);
    EXPECT_EQ(again.codes, q.codes);
    EXPECT_EQ(again.scales, q.scales);
  }
}

// T05: huge and tiny blocks in one row, ws2 = 1.
TEST(UserCase, T05HugeAndTinyBlocks) {
  std::vector<float> x(64, 0.0f);
  x[0] = 2688;
  for (int i = 0; i < 16; ++i) x[16 + i] = 0.005f, x[48 + i] = 0.02f;
  const auto text = [&](const WeightContract& contract) {
    const Quantized q = Quantize(contract, x, 64);
    EXPECT_EQ(q.scale.ws2, 1.0f);
    for (float v : q.Decoded(64)) EXPECT_TRUE(std::isfinite(v));
    std::vector<std::string> blocks;
    for (int b = 0; b < 4; ++b) {
      Nvfp4Block block{.scale = q.scales[b]};
      std::copy_n(q.codes.begin() + 8 * b, 8, block.codes.begin());
      blocks.push_back(Text(block));
    }
    return blocks;
  };
  const std::string huge = "7E 7000000000000000", zeros = "0000000000000000";
  // ModelOpt: block 1 has s = 0.00083, clamped to 2^-9 = 0x01, 0.005/2^-9 = 2.56 -> 3 (code 5); block 3 gets 0x02 and code 7.
  EXPECT_EQ(text(WeightContract::Modelopt(Flavour::kCuda)),
            (std::vector<std::string>{huge, "01 5555555555555555", "38 " + zeros, "02 7777777777777777"}));
  // The load-time contract: the 4-candidate gives block 1 the scale 0x01 as well (0.00125 -> 2^-9) and beats 6, which underflows to
  // zero. In block 3 it wins with 0x03 and code 5 (0.01758, nearer to 0.02 than 0x02 * 6 = 0.02344): docs/decisions.
  EXPECT_EQ(text(WeightContract::Online()),
            (std::vector<std::string>{huge, "01 5555555555555555", "00 " + zeros, "03 5555555555555555"}));
  // The plain exact form lets block 1 underflow: scale 0, codes 7, value 0.
  EXPECT_EQ(text(WeightContract::Plain()),
            (std::vector<std::string>{huge, "00 7777777777777777", "00 " + zeros, "02 7777777777777777"}));
}

// T06: FP8 with partial 128-blocks.
TEST(UserCase, T06Fp8WithPartialBlocks) {
  const std::vector<uint8_t> ones(200 * 144, 0x38);
  const std::vector<float> scale_inv = {1, 2, 4, 8};
  std::vector<float> x(200 * 144);
  const Fp8Scales scales = Fp8PerBlock(scale_inv.data(), 144, 128, 128);
  DequantizeFp8(ones.data(), tensor::DType::kF8E4M3, 144, scales, 0, 200, x.data());
  const auto at = [&](int r, int c) { return x[r * 144 + c]; };
  EXPECT_EQ(at(0, 0), 1);
  EXPECT_EQ(at(0, 128), 2);
  EXPECT_EQ(at(127, 127), 1);
  EXPECT_EQ(at(128, 0), 4);
  EXPECT_EQ(at(199, 143), 8);
  EXPECT_EQ(at(100, 0), 1);
  std::vector<float> piece(3 * 144);  // rows 126..128 alone
  DequantizeFp8(ones.data(), tensor::DType::kF8E4M3, 144, scales, 126, 3, piece.data());
  EXPECT_EQ(piece, std::vector<float>(x.begin() + 126 * 144, x.begin() + 129 * 144));

  const Quantized q = Quantize(WeightContract::Online(), x, 144);
  EXPECT_EQ(Bits(q.scale.ws2), 0x3B430C31u);
  for (int r = 0; r < 200; ++r) {
    for (int b = 0; b < 9; ++b) EXPECT_EQ(q.scales[r * 9 + b], (r < 128 ? 0x66 : 0x76) + (b == 8 ? 8 : 0));
  }
  for (uint8_t c : q.codes) EXPECT_EQ(c, 0x77);
}

TEST(Fp8Dequantizer, Ue8m0AndE5m2) {
  const std::vector<uint32_t> words = {0x7F807E81};
  std::vector<float> scales(4);
  UnpackUe8m0(words, scales.data());
  EXPECT_EQ(scales, (std::vector<float>{4, 0.5f, 2, 1}));
  EXPECT_EQ(Fp8ToFloat(0x3C, tensor::DType::kF8E5M2), 1.0f);
  EXPECT_EQ(Fp8ToFloat(0xC1, tensor::DType::kF8E5M2), -2.5f);
  EXPECT_EQ(Fp8ToFloat(0x3C, tensor::DType::kF8E4M3), 1.5f);
}

TEST(Amax, CountsWhatMustBeRefused) {
  const std::vector<float> x = {1, -3, NAN, -INFINITY, FromBits(0xFFC00001), 2, INFINITY, -0.0f};
  EXPECT_EQ(Amax(x), (AmaxResult{.amax = 3, .nan_count = 2, .inf_count = 2}));
  EXPECT_EQ(Merge(Amax(x), {.amax = 5, .nan_count = 1, .inf_count = 0}), (AmaxResult{.amax = 5, .nan_count = 3, .inf_count = 2}));
  EXPECT_EQ(Amax({}), AmaxResult{});
}

TEST(Ws2, EdgesOfItsRange) {
  EXPECT_EQ(OnlineWs2(0), 1.0f);
  EXPECT_EQ(OnlineWs2(7.9e-36f), 1.0f);
  for (float amax : {8e-36f, 1e-30f, 1.0f, 3.38e38f}) {
    EXPECT_EQ(OnlineWs2(amax), amax / 2688.0f);
    EXPECT_TRUE(std::isfinite(1.0f / OnlineWs2(amax))) << amax;
  }
  EXPECT_EQ(ModeloptWs2(0, Flavour::kCuda), 1.0f);
  EXPECT_EQ(ModeloptWs2(1e-45f, Flavour::kCpu), 1.0f);  // rounds to zero
  EXPECT_GT(ModeloptWs2(9.2e-41f, Flavour::kCpu), 0.0f);
}

// The tiniest and largest tensors that a BF16 file can hold: finite values, right to NVFP4's precision.
TEST(WeightQuantizer, WholeRangeOfBf16) {
  for (int exponent : {-126, -100, -40, 0, 40, 100, 127}) {
    std::vector<float> x = GaussianBf16(1024, 1.0f, 5);
    for (float& v : x) v = RoundToBf16(std::ldexp(v / 8, exponent));
    for (const WeightContract& contract : kAllContracts) {
      const Quantized q = Quantize(contract, x, 64);
      const Distortion d = Measure(q.Decoded(64), x);
      const bool zero_expert = contract.method <= WeightMethod::kPlain && Amax(x).amax < 8e-36f;
      const bool modelopt_search = contract.method == WeightMethod::kModeloptFourOverSix || contract.method == WeightMethod::kModeloptSweep;
      if (zero_expert) {
        EXPECT_EQ(d.relative_rmse, 1.0);
      } else if (!modelopt_search || std::abs(exponent) <= 40) {  // beyond, squares leave the range of FP32, there as here
        EXPECT_LT(d.relative_rmse, 0.15) << exponent << " " << static_cast<int>(contract.method);
      }
      for (uint8_t s : q.scales) EXPECT_FALSE(s & 0x80 || IsE4m3Nan(s));
    }
  }
}

TEST(WeightQuantizer, RowsDoNotDependOnEachOther) {
  const std::vector<float> x = GaussianBf16(8 * 48, 0.05f, 6);
  for (const WeightContract& contract : kAllContracts) {
    const Quantized whole = Quantize(contract, x, 48);
    const Quantized second = Quantize(contract, {x.begin() + 4 * 48, x.end()}, 48, Amax(x).amax);
    EXPECT_TRUE(std::equal(second.codes.begin(), second.codes.end(), whole.codes.begin() + 4 * 24));
    EXPECT_TRUE(std::equal(second.scales.begin(), second.scales.end(), whole.scales.begin() + 4 * 3));
  }
}

// The sweep's shortcuts (a bound on the clipped element, sums cut short) must not change its answer.
TEST(WeightQuantizer, SweepEqualsTheFullSearch) {
  const std::vector<float> x = GaussianBf16(64 * 64, 0.05f, 7);
  const float amax = Amax(x).amax;
  const GlobalScale scale = GlobalScaleFor(WeightContract::ModeloptSweep(Flavour::kCuda), amax);
  for (size_t b = 0; b < x.size() / 16; ++b) {
    const BlockInput in(x.data() + b * 16, 16);
    uint8_t best = 0;
    float least = INFINITY;
    for (int code = 1; code <= 0x7E; ++code) {
      const float divisor = E4m3ToFloat(static_cast<uint8_t>(code)) / 448.0f * amax / 6.0f;
      float error = 0;
      for (float v : in) {
        const float d = std::abs(v) - std::abs(E2m1ToFloat(FloatToE2m1(v / divisor))) * divisor;
        error += d * d;
      }
      if (error < least) least = error, best = static_cast<uint8_t>(code);
    }
    ASSERT_EQ(QuantizeBlockModeloptSweep(in, amax, scale.ws2).scale, best) << b;
    // The static export of the winner's amax gives this very scale.
    const float best_amax = amax * (E4m3ToFloat(best) / 448.0f);
    for (Flavour f : {Flavour::kCuda, Flavour::kCpu}) ASSERT_EQ(StaticScale(best_amax, amax, 448, f), best);
  }
}

// Section 6's anchors: Gaussian BF16 weights.
TEST(WeightQuantizer, RelativeErrorOnGaussianWeights) {
  const std::vector<float> x = GaussianBf16(256 * 1024, 0.02f, 8);
  const auto error = [&](const WeightContract& contract) { return Measure(Quantize(contract, x, 1024).Decoded(1024), x).relative_rmse; };
  EXPECT_NEAR(error(WeightContract::Modelopt(Flavour::kCuda)), 0.0951, 0.001);
  EXPECT_NEAR(error(WeightContract::ModeloptFourOverSix(Flavour::kCuda)), 0.0870, 0.001);
  EXPECT_NEAR(error(WeightContract::ModeloptSweep(Flavour::kCuda)), 0.0812, 0.001);
  EXPECT_NEAR(error(WeightContract::Online()), 0.0870, 0.001);
}

// The other settings of the search, for which FlashInfer has options: M = 256, MAE, and the error in the domain of the values.
TEST(WeightQuantizer, SettingsOfTheSearch) {
  const std::vector<float> x = GaussianBf16(64 * 1024, 0.02f, 9);
  const auto error = [&](const WeightContract& contract) { return Measure(Quantize(contract, x, 1024).Decoded(1024), x).relative_rmse; };
  EXPECT_NEAR(error({.m = 256}), 0.0869, 0.001);
  EXPECT_NEAR(error({.m = 256, .norm = ErrorNorm::kMae}), 0.0883, 0.001);
  EXPECT_NEAR(error({.m = 256, .form = ErrorForm::kValue}), 0.0869, 0.001);
}

TEST(Distortion, OfKnownVectors) {
  const std::vector<float> want = {3, 4, 0}, got = {3, 4, 0.05f};
  const Distortion d = Measure(got, want);
  EXPECT_NEAR(d.relative_rmse, 0.01, 1e-9);
  EXPECT_NEAR(d.sqnr_db, 40, 1e-6);
  EXPECT_NEAR(d.max_error, 0.05, 1e-8);
  EXPECT_NEAR(d.cosine, 5 / std::sqrt(25.0025), 1e-9);
  EXPECT_EQ(Measure(want, want).relative_rmse, 0);
  EXPECT_TRUE(std::isinf(Measure(want, want).sqnr_db));
  EXPECT_TRUE(std::isnan(Measure(std::vector<float>{NAN, 1}, std::vector<float>{1, 1}).max_error));
}

}  // namespace
}  // namespace halfbyte::numerics
