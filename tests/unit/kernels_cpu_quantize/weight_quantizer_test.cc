// Every variant of the fast weight quantizer against the scalar specification: equal bytes for every finite input.
#include "kernels/api/weight_quantizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "numerics/bf16.h"
#include "numerics/fp16.h"
#include "unit/numerics/test_matrices.h"

namespace halfbyte::kernels {
namespace {

using namespace numerics;
using tensor::DType;

// A source of any type: its bytes, and its values in FP32.
struct Source {
  DType dtype;
  std::vector<uint16_t> halves;
  std::vector<float> values;
  const void* data() const { return dtype == DType::kF32 ? static_cast<const void*>(values.data()) : halves.data(); }
  int64_t size() const { return static_cast<int64_t>(values.size()); }
};

Source MakeSource(DType dtype, std::vector<float> values) {
  Source s{.dtype = dtype, .halves = {}, .values = std::move(values)};
  if (dtype == DType::kF32) return s;
  for (float& v : s.values) {
    const uint16_t h = dtype == DType::kBF16 ? FloatToBf16(v) : FloatToFp16(v);
    s.halves.push_back(h);
    v = dtype == DType::kBF16 ? Bf16ToFloat(h) : Fp16ToFloat(h);
  }
  return s;
}

void ExpectEqualBytes(const WeightContract& contract, const Source& s, int64_t cols, const GlobalScale& scale, const std::string& what) {
  const int64_t rows = s.size() / cols;
  std::vector<uint8_t> codes(s.size() / 2), scales(s.size() / 16);
  QuantizeMatrix(contract, s.values.data(), rows, cols, scale, codes.data(), scales.data());
  for (const WeightQuantizer* q : WeightQuantizers()) {
    // One guard byte on each side; the outputs start at odd addresses.
    std::vector<uint8_t> got_codes(codes.size() + 2, 0xEE), got_scales(scales.size() + 2, 0xEE);
    q->quantize(contract, s.data(), s.dtype, rows, cols, scale, got_codes.data() + 1, got_scales.data() + 1);
    for (size_t b = 0; b < scales.size(); ++b) {
      ASSERT_EQ(got_scales[b + 1], scales[b]) << q->name << " " << what << " block " << b;
      for (int j = 0; j < 8; ++j) ASSERT_EQ(got_codes[8 * b + j + 1], codes[8 * b + j]) << q->name << " " << what << " block " << b << " byte " << j;
    }
    ASSERT_TRUE(got_codes.front() == 0xEE && got_codes.back() == 0xEE && got_scales.front() == 0xEE && got_scales.back() == 0xEE) << q->name;
  }
}

const std::vector<DType> kTypes = {DType::kBF16, DType::kF16, DType::kF32};
const std::vector<WeightContract> kContracts = {WeightContract::Online(), {.m = 256}, WeightContract::Modelopt(Flavour::kCuda), WeightContract::Modelopt(Flavour::kCpu),
                                                WeightContract::ModeloptFourOverSix(Flavour::kCuda), WeightContract::ModeloptFourOverSix(Flavour::kCpu)};
const std::vector<WeightContract> kScalarContracts = {WeightContract::Plain(), {.norm = ErrorNorm::kMae}, {.form = ErrorForm::kValue},
                                                      WeightContract::ModeloptStatic(Flavour::kCuda), WeightContract::ModeloptSweep(Flavour::kCuda)};

float Amax(const std::vector<float>& x) { return numerics::Amax(x).amax; }

void ExpectEqualBytes(const WeightContract& contract, const Source& s, int64_t cols, const std::string& what) {
  ExpectEqualBytes(contract, s, cols, GlobalScaleFor(contract, Amax(s.values)), what);
}

TEST(WeightQuantizer, ListsWhatRunsHereBestFirst) {
  ASSERT_FALSE(WeightQuantizers().empty());
  EXPECT_STREQ(WeightQuantizers().back()->name, "scalar");
  EXPECT_EQ(&ChooseWeightQuantizer(), WeightQuantizers().front());
  EXPECT_EQ(*ChooseWeightQuantizer({{"moe_gemm", "avx2"}, {"quantize", "scalar"}}), WeightQuantizers().back());
  EXPECT_EQ(*ChooseWeightQuantizer({{"moe_gemm", "scalar"}}), WeightQuantizers().front());
  const auto none = ChooseWeightQuantizer({{"quantize", "mmx"}});
  ASSERT_FALSE(none);
  for (const WeightQuantizer* q : WeightQuantizers()) EXPECT_NE(none.error().message().find(q->name), std::string::npos) << none.error().message();
  for (const WeightQuantizer* q : WeightQuantizers()) std::printf("variant %s\n", q->name);
}

TEST(WeightQuantizer, T17AndWorkedMatrices) {
  for (const WeightContract& c : kContracts) ExpectEqualBytes(c, MakeSource(DType::kBF16, test::T17Matrix()), 256, "T17");
  ExpectEqualBytes(WeightContract::ModeloptSweep(Flavour::kCuda), MakeSource(DType::kBF16, test::T17Matrix()), 256, "T17 sweep");
  const std::vector<float> large = test::T17Values(4096);
  std::vector<uint8_t> codes(large.size() / 2), scales(large.size() / 16);
  const Source s = MakeSource(DType::kBF16, large);
  for (const WeightQuantizer* q : WeightQuantizers()) {
    q->quantize(WeightContract::Online(), s.data(), s.dtype, 4096, 256, GlobalScaleFor(WeightContract::Online(), Amax(large)), codes.data(), scales.data());
    EXPECT_EQ(test::Fnv(codes), test::kLargeOnlineCodes) << q->name;
    EXPECT_EQ(test::Fnv(scales), test::kLargeOnlineScales) << q->name;
  }
}

// All shapes of the rest: 1 to 40 blocks.
TEST(WeightQuantizer, EveryNumberOfBlocks) {
  for (int blocks = 1; blocks <= 40; ++blocks) {
    for (DType dtype : kTypes) {
      const Source s = MakeSource(dtype, test::GaussianBf16(blocks * 16, 0.05f, blocks));
      for (const WeightContract& c : kContracts) ExpectEqualBytes(c, s, 16, std::to_string(blocks) + " blocks");
      for (const WeightContract& c : kScalarContracts) ExpectEqualBytes(c, s, 16, std::to_string(blocks) + " blocks");
    }
  }
}

// Random matrices over the whole range of exponents and all kinds of blocks, also with a scale that does not fit the data.
TEST(WeightQuantizer, RandomMatricesOfEveryKind) {
  std::mt19937_64 rng(17);
  std::normal_distribution<float> gauss;
  for (int round = 0; round < 250; ++round) {
    const int exponent = static_cast<int>(rng() % 60) - 40;  // of the matrix
    std::vector<float> x(64 * 16);
    for (size_t b = 0; b < x.size() / 16; ++b) {
      const int kind = static_cast<int>(rng() % 12);
      const float size = std::ldexp(1.0f, exponent - static_cast<int>(rng() % 24));
      for (int i = 0; i < 16; ++i) {
        float v = gauss(rng) * size;
        if (kind == 0) v = 0;
        if (kind == 1) v = -0.0f;
        if (kind == 2) v = i == 5 ? v : i % 2 ? -0.0f : 0.0f;
        if (kind == 3) v = std::ldexp(rng() % 2 ? 1.0f : -1.5f, exponent - static_cast<int>(rng() % 4));  // many exact ties
        if (kind == 4) v = static_cast<float>(static_cast<int>(rng() % 25) - 12) * 0.5f * size;
        if (kind == 5) v = std::ldexp(gauss(rng), -130);  // FP32 and BF16 subnormals
        if (kind == 6) v = rng() % 8 ? v * 0x1p-20f : v;
        x[b * 16 + i] = v;
      }
    }
    for (DType dtype : kTypes) {
      std::vector<float> y = x;
      if (dtype == DType::kF16) for (float& v : y) v = std::fmin(std::fmax(v, -65504.0f), 65504.0f);
      const Source s = MakeSource(dtype, y);
      const float amax = Amax(s.values);
      for (const WeightContract& c : kContracts) {
        for (float factor : {1.0f, 1.37f, 0.02f}) ExpectEqualBytes(c, s, 64, GlobalScaleFor(c, amax * factor), "round " + std::to_string(round));
      }
      if (round % 8 == 0) ExpectEqualBytes(WeightContract::ModeloptSweep(Flavour::kCuda), s, 64, "sweep, round " + std::to_string(round));
    }
  }
}

// Every BF16 magnitude as the only element of its block and in company, under several amaxes: all of the format's values.
TEST(WeightQuantizer, EveryBf16Value) {
  std::vector<float> x;
  for (uint32_t b = 0; b < 0x7F80; ++b) {
    const float v = Bf16ToFloat(static_cast<uint16_t>(b));
    for (int i = 0; i < 16; ++i) x.push_back(i == static_cast<int>(b % 16) ? v : i % 3 == 0 ? v * 0.5f : i % 3 == 1 ? -v * 0.3125f : 0.0f);
  }
  for (DType dtype : {DType::kBF16, DType::kF32}) {
    const Source s = MakeSource(dtype, x);
    const std::vector<float> all = {3.3895314e38f, 1e33f, 3.0f, 0.0593f, 1e-6f, 3e-27f, 9e-36f}, some = {0.0593f, 1e-6f};
    for (float amax : dtype == DType::kBF16 ? all : some) {
      for (const WeightContract& c : kContracts) ExpectEqualBytes(c, s, 16, GlobalScaleFor(c, amax), "amax " + std::to_string(amax));
    }
  }
}

TEST(WeightQuantizer, EveryFp16Value) {
  std::vector<float> x;
  for (uint32_t b = 0; b < 0x10000; ++b) {
    if ((b & 0x7C00) != 0x7C00) x.push_back(Fp16ToFloat(static_cast<uint16_t>(b)));
  }
  const Source s = MakeSource(DType::kF16, x);
  for (float amax : {65504.0f, 100.0f, 0.01f, 1e-7f}) {
    for (const WeightContract& c : kContracts) ExpectEqualBytes(c, s, 32, GlobalScaleFor(c, amax), "amax " + std::to_string(amax));
  }
}

// Quotients on and next to E2M1's midpoints: x = midpoint * scale * ws2 and the neighbours, in FP32.
TEST(WeightQuantizer, TiesAndTheirNeighbours) {
  std::mt19937 rng(3);
  std::vector<float> x;
  const float amax = 0.0593f;
  for (const WeightContract& c : kContracts) {
    const GlobalScale scale = GlobalScaleFor(c, amax);
    x.clear();
    for (int code = 1; code <= 0x7E; ++code) {
      for (int k = 0; k < 8; ++k) {
        const float unit = E4m3ToFloat(static_cast<uint8_t>(code)) * scale.ws2;
        x.push_back(6 * unit);
        for (float mid : {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f, 0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f, 4.5f}) {
          float v = mid * unit;
          for (uint32_t step = rng() % 5; step > 2; --step) v = std::nextafter(v, 1.0f);
          for (uint32_t step = rng() % 5; step > 2; --step) v = std::nextafter(v, 0.0f);
          x.push_back(rng() % 2 ? v : -v);
        }
      }
    }
    ExpectEqualBytes(c, MakeSource(DType::kF32, x), 16, scale, "ties");
    ExpectEqualBytes(c, MakeSource(DType::kBF16, x), 16, scale, "ties in BF16");
  }
}

TEST(WeightQuantizer, AmaxOfEveryLengthAndPlace) {
  std::mt19937 rng(5);
  for (DType dtype : kTypes) {
    for (int n = 0; n <= 300; ++n) {
      std::vector<float> x = test::GaussianBf16(n, 1.0f, n + 1);
      if (n > 0) x[rng() % n] = -50.0f - n;
      const Source s = MakeSource(dtype, x);
      for (const WeightQuantizer* q : WeightQuantizers()) ASSERT_EQ(q->amax(s.data(), dtype, n), numerics::Amax(s.values)) << q->name << " " << n;
    }
  }
}

TEST(WeightQuantizer, AmaxCountsNanAndInfinity) {
  for (DType dtype : kTypes) {
    std::vector<float> x = test::GaussianBf16(1000, 1.0f, 1);
    x[3] = NAN, x[999] = -NAN, x[500] = INFINITY, x[501] = -INFINITY, x[502] = INFINITY, x[7] = 100;
    const Source s = MakeSource(dtype, x);
    for (const WeightQuantizer* q : WeightQuantizers()) {
      EXPECT_EQ(q->amax(s.data(), dtype, 1000), (AmaxResult{.amax = 100, .nan_count = 2, .inf_count = 3})) << q->name;
    }
  }
}

TEST(WeightQuantizer, Fp8ToBf16EveryCodeAndShape) {
  std::vector<float> scale_values = {0.00123f, 3.7f, 0x1p-120f, 0x1p120f, 0x1p-127f, NAN, 1.0f, 448.0f, 1e-3f};
  std::vector<uint8_t> codes;
  for (int i = 0; i < 7 * 139; ++i) codes.push_back(static_cast<uint8_t>(i * 37));
  for (DType dtype : {DType::kF8E4M3, DType::kF8E5M2}) {
    for (const Fp8Scales& scales : {Fp8PerBlock(scale_values.data(), 139, 3, 50), Fp8PerRow(scale_values.data(), 139), Fp8PerTensor(scale_values.data(), 7, 139)}) {
      std::vector<float> want(5 * 139);
      DequantizeFp8(codes.data(), dtype, 139, scales, 2, 5, want.data());
      for (const WeightQuantizer* q : WeightQuantizers()) {
        std::vector<uint16_t> got(5 * 139 + 1, 0xABCD);
        q->fp8_to_bf16(codes.data(), dtype, 139, scales, 2, 5, got.data());
        EXPECT_EQ(got.back(), 0xABCD);
        for (size_t i = 0; i < want.size(); ++i) {
          if (std::isnan(want[i])) {
            ASSERT_TRUE(std::isnan(Bf16ToFloat(got[i]))) << q->name << " " << i;
          } else {
            ASSERT_EQ(got[i], FloatToBf16(want[i])) << q->name << " " << i;
          }
        }
      }
    }
  }
}

TEST(WeightQuantizer, F32ToBf16) {
  std::vector<float> x;
  for (uint64_t b = 0; b < 0x100000000; b += 65521) x.push_back(test::FromBits(static_cast<uint32_t>(b)));
  for (uint32_t b = 0; b < 0x10000; ++b) for (uint32_t low : {0u, 0x7FFFu, 0x8000u, 0x8001u}) x.push_back(test::FromBits((b << 16) | low));
  for (size_t n : {x.size(), size_t{1}, size_t{7}, size_t{17}}) {
    for (const WeightQuantizer* q : WeightQuantizers()) {
      std::vector<uint16_t> got(n + 1, 0xABCD);
      q->f32_to_bf16(x.data(), static_cast<int64_t>(n), got.data());
      EXPECT_EQ(got.back(), 0xABCD);
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(got[i], FloatToBf16(x[i])) << q->name << " " << test::Bits(x[i]);
      // In place.
      std::vector<float> copy(x.begin(), x.begin() + static_cast<int64_t>(n));
      q->f32_to_bf16(copy.data(), static_cast<int64_t>(n), reinterpret_cast<uint16_t*>(copy.data()));
      EXPECT_EQ(std::memcmp(copy.data(), got.data(), n * 2), 0) << q->name;
    }
  }
}

}  // namespace
}  // namespace halfbyte::kernels
