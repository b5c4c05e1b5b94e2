// Activation quantizers: the fingerprints of the reference README and the rules at the edges.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "numerics/activation_quantizer.h"
#include "unit/numerics/test_matrices.h"

namespace halfbyte::numerics {
namespace {

using namespace test;

TEST(Fingerprint, ActivationsPerToken) {
  const std::vector<float> x = T17Matrix();
  std::vector<uint8_t> codes(x.size() / 2), scales(x.size() / 16);
  std::vector<float> rows(kT17Rows);
  QuantizeActivationPerToken(x.data(), kT17Rows, kT17Cols, codes.data(), scales.data(), rows.data());
  EXPECT_EQ(Fnv(codes), 0x9672036E91051657u);
  EXPECT_EQ(Fnv(scales), 0x2F9F504D2FF94822u);
  EXPECT_EQ(Fnv(rows), 0xCA29B269F326DAC4u);
}

TEST(Fingerprint, ActivationsPerTensor) {
  const std::vector<float> x = T17Matrix();
  std::vector<uint8_t> codes(x.size() / 2), scales(x.size() / 16);
  QuantizeActivationPerTensor(x.data(), kT17Rows, kT17Cols, 1.0f, codes.data(), scales.data());
  EXPECT_EQ(Fnv(codes), 0xA2FDA88C2BFA8FD0u);
  EXPECT_EQ(Fnv(scales), 0x666C65001716865Fu);
}

TEST(ActivationPerToken, ZeroRowAndTinyRow) {
  std::vector<float> x(3 * 16, 0.0f);
  for (int i = 0; i < 16; ++i) x[16 + i] = 1e-39f;   // 2688 / r overflows: encode = FLT_MAX
  for (int i = 0; i < 16; ++i) x[32 + i] = 3e38f;
  std::vector<uint8_t> codes(24), scales(3);
  std::vector<float> rows(3);
  QuantizeActivationPerToken(x.data(), 3, 16, codes.data(), scales.data(), rows.data());
  EXPECT_EQ(rows[0], 0.0f);
  EXPECT_EQ(scales[0], 0);
  EXPECT_EQ(std::vector<uint8_t>(codes.begin(), codes.begin() + 8), std::vector<uint8_t>(8, 0));
  EXPECT_EQ(rows[1], 1.0f / kFloatMax);
  EXPECT_TRUE(std::isfinite(rows[2]) && rows[2] > 0);
  std::vector<float> decoded(16);
  DecodeMatrix(codes.data() + 16, scales.data() + 2, rows[2], 1, 16, decoded.data());
  for (float v : decoded) EXPECT_NEAR(v / 3e38f, 1, 1e-6);
}

TEST(ActivationPlain, NegativeZeroKeepsItsSignAlsoInAZeroBlock) {
  std::vector<float> x(16, 0.0f);
  x[3] = -0.0f;
  EXPECT_EQ(CodeDigits(QuantizeBlockPlain(BlockInput(x.data(), 16), 1)), "0008000000000000");
}

TEST(ActivationInt8, GroupsOf32AndALastOf16) {
  const int64_t cols = 80;
  std::vector<float> x = GaussianBf16(2 * cols, 1.0f, 3);
  for (int i = 0; i < 32; ++i) x[cols + i] = 0;
  std::vector<int8_t> codes(2 * cols);
  std::vector<float> scales(2 * Int8Groups(cols));
  ASSERT_EQ(Int8Groups(cols), 3);
  QuantizeActivationInt8(x.data(), 2, cols, codes.data(), scales.data());
  EXPECT_EQ(scales[3], 0.0f);
  for (int r = 0; r < 2; ++r) {
    for (int g = 0; g < 3; ++g) {
      const int n = g == 2 ? 16 : 32;
      int largest = 0;
      float amax = 0;
      for (int i = 0; i < n; ++i) {
        const int64_t k = r * cols + g * 32 + i;
        const float scale = scales[r * 3 + g];
        largest = std::max(largest, std::abs(static_cast<int>(codes[k])));
        amax = std::max(amax, std::abs(x[k]));
        EXPECT_EQ(codes[k], scale == 0 ? 0 : static_cast<int>(std::nearbyint(x[k] / scale)));
      }
      EXPECT_EQ(largest, amax == 0 ? 0 : 127);
      EXPECT_EQ(scales[r * 3 + g], amax / 127);
    }
  }
}

TEST(ActivationInt8, TiesToEvenAndClamp) {
  EXPECT_EQ(Int8Code(2.5f, 1), 2);
  EXPECT_EQ(Int8Code(3.5f, 1), 4);
  EXPECT_EQ(Int8Code(-2.5f, 1), -2);
  EXPECT_EQ(Int8Code(-200, 1), -127);
  EXPECT_EQ(Int8Code(1e-45f, Int8Scale(1e-45f)), 0);  // the scale itself is zero
}

}  // namespace
}  // namespace halfbyte::numerics
