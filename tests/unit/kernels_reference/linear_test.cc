// Linear layers against the plain sum, in FP64, of what the bits mean (tests/support/weight_data.cc knows that by itself).
#include <cmath>
#include <gtest/gtest.h>

#include "kernels/reference/reference_backend.h"
#include "support/device_data.h"
#include "support/random_data.h"
#include "support/weight_data.h"

namespace halfbyte::test {
namespace {

using tensor::DType;
using tensor::Format;
using tensor::Outer;

// The result must be the FP32 number next to the true sum (or one of two, where FP64 cannot tell).
void ExpectRounded(float got, long double want, long double magnitude) {
  EXPECT_LE(std::abs(got - want), 0x1.0001p-24L * std::abs(want) + 1e-17L * magnitude + 1e-45L) << got << " for " << static_cast<double>(want);
}

TEST(ReferenceLinear, IsTheSumOfProductsInEveryFormat) {
  const auto backend = kernels::CreateReferenceBackend({});
  constexpr int64_t kT = 5, kN = 70, kK = 144;
  for (const Format& format : LinearFormats()) {
    SCOPED_TRACE(format.ToString());
    const WeightData w = RandomWeight(format, kN, kK, 3);
    auto weight = backend->CreateLinear(format, kN, kK);
    ASSERT_TRUE(weight);
    ASSERT_TRUE(backend->PackLinear(**weight, 0, w.View()));
    EXPECT_EQ((*weight)->bytes(), backend->LinearBytes(format, kN, kK));
    const std::vector<float> x = AwkwardRows(kT, kK, 4), bias = Random(5).Normals(kN), before = Random(6).Normals(kT * kN);
    DeviceMatrix in(*backend, DType::kF32, kT, kK, x), out(*backend, DType::kF32, kT, kN, before);
    const kernels::LinearPart part{.weight = weight->get(), .bias = bias.data(), .out = out.view(), .accumulate = true};
    backend->Linear({.x = in.view(), .prompt_rows = 2, .parts = {&part, 1}});
    const std::vector<float> y = out.Read();
    for (int64_t t = 0; t < kT; ++t)
      for (int64_t n = 0; n < kN; ++n) {
        long double sum = static_cast<long double>(bias[n]) + before[t * kN + n], magnitude = std::abs(sum);
        for (int64_t i = 0; i < kK; ++i) {
          sum += static_cast<long double>(x[t * kK + i]) * w.values[n * kK + i];
          magnitude += std::abs(static_cast<long double>(x[t * kK + i]) * w.values[n * kK + i]);
        }
        ExpectRounded(y[t * kN + n], sum, magnitude);
      }
  }
}

// fp32(fp8) * fp32(scale) needs more bits than BF16 has: 1.125 (E4M3 0x39) times 1 + 2^-20.
TEST(ReferenceLinear, Fp8IsNeverRoundedToBf16) {
  const auto backend = kernels::CreateReferenceBackend({});
  const std::vector<uint8_t> codes(16, 0x39);
  const float scale = 1.0f + 0x1p-20f;
  auto weight = backend->CreateLinear(Format::Fp8(Outer::kPerTensor), 1, 16);
  ASSERT_TRUE(backend->PackLinear(**weight, 0, {.format = Format::Fp8(Outer::kPerTensor), .rows = 1, .cols = 16, .elements = codes.data(), .outer = &scale}));
  std::vector<float> one(16, 0.0f);
  one[3] = 1.0f;
  DeviceMatrix x(*backend, DType::kBF16, 1, 16, one), out(*backend, DType::kF32, 1, 1);
  const kernels::LinearPart part{.weight = weight->get(), .out = out.view()};
  backend->Linear({.x = x.view(), .parts = {&part, 1}});
  EXPECT_EQ(out.Read()[0], 1.125f * scale);
}

TEST(ReferenceLinear, RefusesWhatDoesNotFit) {
  const auto backend = kernels::CreateReferenceBackend({});
  EXPECT_FALSE(backend->CreateLinear(Format::Nvfp4(), 4, 24));  // K not a multiple of 16
  EXPECT_FALSE(backend->SupportsLinear(Format::Mxfp4()));
  EXPECT_FALSE(backend->SupportsLinear(Format::Int8Groups()));
  EXPECT_FALSE(backend->SupportsLinear(Format::Plain(DType::kI32)));
  EXPECT_FALSE(backend->SupportsLinear(Format::Nvfp4(Outer::kPerRow)));
  auto weight = backend->CreateLinear(Format::Fp8Block(32, 32), 70, 64);
  ASSERT_TRUE(weight);
  const WeightData w = RandomWeight(Format::Fp8Block(32, 32), 70, 64, 1), other = RandomWeight(Format::Bf16(), 70, 64, 1);
  EXPECT_TRUE(backend->PackLinear(**weight, 64, w.Rows(64, 70)));
  EXPECT_FALSE(backend->PackLinear(**weight, 16, w.Rows(0, 32)));  // inside a block
  EXPECT_FALSE(backend->PackLinear(**weight, 64, w.Rows(0, 32)));  // past the end
  EXPECT_FALSE(backend->PackLinear(**weight, 0, other.View()));
}

}  // namespace
}  // namespace halfbyte::test
