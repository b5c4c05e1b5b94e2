// Number formats, exhaustively: against NVIDIA's host conversions where the toolkit is present, and always against digests and
// values made from those functions.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <vector>

#include "numerics/bf16.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/e5m2.h"
#include "numerics/e8m0.h"
#include "numerics/fp16.h"
#include "unit/numerics/cuda_oracle.h"
#include "unit/numerics/test_matrices.h"

namespace halfbyte::numerics {
namespace {

using namespace test;

// The inputs of every encoder: all BF16 values, all FP16 values, a stride over all float patterns, and the neighbours of every tie and
// every value of the target format (given by its decoder). NaNs are tested apart: NVIDIA's functions give them other payloads.
template <typename Decode>
std::vector<float> Inputs(Decode decode, int codes) {
  std::vector<float> inputs;
  for (uint32_t b = 0; b < 0x10000; ++b) inputs.push_back(Bf16ToFloat(static_cast<uint16_t>(b)));
  for (uint32_t b = 0; b < 0x10000; ++b) inputs.push_back(Fp16ToFloat(static_cast<uint16_t>(b)));
  for (uint64_t b = 0; b < 0x100000000; b += 4093) inputs.push_back(FromBits(static_cast<uint32_t>(b)));
  for (int i = 0; i + 1 < codes; ++i) {
    const double a = decode(i), b = decode(i + 1);
    if (!std::isfinite(a) || !std::isfinite(b)) continue;
    for (float center : {static_cast<float>(a), static_cast<float>((a + b) / 2)}) {
      for (float v : {center, std::nextafter(center, -1e30f), std::nextafter(center, 1e30f)}) {
        inputs.push_back(v);
        inputs.push_back(-v);
      }
    }
  }
  std::erase_if(inputs, [](float v) { return v != v; });
  return inputs;
}

template <typename Ours, typename Oracle, typename Decode>
void CheckEncoder(Ours ours, Oracle oracle, Decode decode, int codes, uint64_t digest) {
  uint64_t h = 0xCBF29CE484222325;
  for (float v : Inputs(decode, codes)) {
    const auto got = ours(v);
    h = Fnv(&got, sizeof(got), h);
    if (HaveCudaOracle()) {
      ASSERT_EQ(got, oracle(v)) << std::hexfloat << v;
    }
  }
  EXPECT_EQ(h, digest) << std::hex << h;
}

TEST(Codecs, OracleInUse) {
  std::printf("%s\n", HaveCudaOracle() ? "oracle: NVIDIA's host conversions" : "oracle: committed digests (no CUDA headers found)");
}

TEST(E2m1, DecodesAll16Codes) {
  for (uint8_t c = 0; c < 16; ++c) {
    if (HaveCudaOracle()) {
      EXPECT_EQ(Bits(E2m1ToFloat(c)), Bits(CudaE2m1ToFloat(c))) << int{c};
    }
    EXPECT_EQ(E2m1ToFloat(c), (std::vector<float>{0, .5, 1, 1.5, 2, 3, 4, 6, 0, -.5, -1, -1.5, -2, -3, -4, -6})[c]);
    EXPECT_EQ(std::signbit(E2m1ToFloat(c)), c >= 8);
    EXPECT_EQ(FloatToE2m1(E2m1ToFloat(c)), c);
  }
}

TEST(E2m1, EncodesAsTheHardware) {
  CheckEncoder(FloatToE2m1, CudaFloatToE2m1, [](int c) { return E2m1ToFloat(static_cast<uint8_t>(c)); }, 8, 0xd6929afd0f651e10);
}

TEST(E2m1, NanIsPlusSix) {
  for (uint32_t bits : {0x7FC00000u, 0xFFC00000u, 0x7F800001u, 0xFFFFFFFFu}) {
    EXPECT_EQ(FloatToE2m1(FromBits(bits)), 7);
    EXPECT_EQ(FloatToE2m1Modelopt(FromBits(bits)), 7);
    if (HaveCudaOracle()) {
      EXPECT_EQ(CudaFloatToE2m1(FromBits(bits)), 7);
    }
  }
}

TEST(E2m1, ModeloptDiffersInTheSignOfNegativeZeroOnly) {
  for (float v : Inputs([](int c) { return E2m1ToFloat(static_cast<uint8_t>(c)); }, 8)) {
    EXPECT_EQ(FloatToE2m1Modelopt(v), Bits(v) == 0x80000000 ? 0 : FloatToE2m1(v)) << v;
  }
}

TEST(E4m3, DecodesAll256Codes) {
  uint64_t h = 0xCBF29CE484222325;
  for (int c = 0; c < 256; ++c) {
    const float v = E4m3ToFloat(static_cast<uint8_t>(c));
    const uint32_t bits = Bits(v);
    if (IsE4m3Nan(static_cast<uint8_t>(c))) {
      EXPECT_TRUE(v != v);
      continue;
    }
    h = Fnv(&bits, 4, h);
    if (HaveCudaOracle()) {
      EXPECT_EQ(bits, Bits(CudaE4m3ToFloat(static_cast<uint8_t>(c)))) << c;
    }
    EXPECT_EQ(FloatToE4m3(v), c);
  }
  EXPECT_EQ(h, 0x9d09ddc37a47fa25) << std::hex << h;
}

TEST(E4m3, EncodesAsTheHardware) {
  CheckEncoder(FloatToE4m3, CudaFloatToE4m3, [](int c) { return E4m3ToFloat(static_cast<uint8_t>(c)); }, 127, 0x73ee84dd696cca02);
}

TEST(E5m2, DecodesAll256Codes) {
  uint64_t h = 0xCBF29CE484222325;
  for (int c = 0; c < 256; ++c) {
    const float v = E5m2ToFloat(static_cast<uint8_t>(c));
    const uint32_t bits = Bits(v);
    if (v != v) {
      EXPECT_GT(c & 0x7F, 0x7C);
      continue;
    }
    h = Fnv(&bits, 4, h);
    if (HaveCudaOracle()) {
      EXPECT_EQ(bits, Bits(CudaE5m2ToFloat(static_cast<uint8_t>(c)))) << c;
    }
    if (std::isfinite(v)) {
      EXPECT_EQ(FloatToE5m2(v), c);
    }
  }
  EXPECT_EQ(h, 0xc6d565e59341eaa5) << std::hex << h;
}

TEST(E5m2, EncodesAsTheHardware) {
  CheckEncoder(FloatToE5m2, CudaFloatToE5m2, [](int c) { return E5m2ToFloat(static_cast<uint8_t>(c)); }, 124, 0xe058a7edd633d797);
}

TEST(E8m0, DecodesAll256Codes) {
  for (int c = 0; c < 255; ++c) {
    const float v = E8m0ToFloat(static_cast<uint8_t>(c));
    EXPECT_EQ(v, std::ldexp(1.0f, c - 127));
    EXPECT_TRUE(IsE8m0(v)) << c;
    if (HaveCudaOracle()) {
      EXPECT_EQ(v, CudaE8m0ToFloat(static_cast<uint8_t>(c))) << c;
    }
  }
  EXPECT_TRUE(std::isnan(E8m0ToFloat(0xFF)));
  for (float v : {0.0f, 3.0f, -2.0f, 0x1.8p-127f, 0x1p-128f, INFINITY, NAN}) EXPECT_FALSE(IsE8m0(v)) << v;
}

TEST(Bf16, RoundsAsTheHardware) {
  CheckEncoder(FloatToBf16, CudaFloatToBf16, [](int c) { return Bf16ToFloat(static_cast<uint16_t>(c)); }, 0x7F80, 0x5e370c68695264ad);
}

TEST(Bf16, All65536ComeBack) {
  for (uint32_t b = 0; b < 0x10000; ++b) {
    const bool nan = (b & 0x7FFF) > 0x7F80;
    EXPECT_EQ(FloatToBf16(Bf16ToFloat(static_cast<uint16_t>(b))), nan ? b | 0x40 : b);
  }
  EXPECT_EQ(FloatToBf16(FromBits(0x7F800001)), 0x7FC0);  // a NaN whose upper half alone would be infinity
  EXPECT_EQ(FloatToBf16(FromBits(0xFFFFFFFF)), 0xFFFF);
}

TEST(Fp16, RoundsAsTheHardware) {
  CheckEncoder(FloatToFp16, CudaFloatToFp16, [](int c) { return Fp16ToFloat(static_cast<uint16_t>(c)); }, 0x7C00, 0xdd91c57716a79a4f);
}

TEST(Fp16, All65536ComeBack) {
  uint64_t h = 0xCBF29CE484222325;
  for (uint32_t b = 0; b < 0x10000; ++b) {
    const float v = Fp16ToFloat(static_cast<uint16_t>(b));
    const uint32_t bits = Bits(v);
    if (v == v) h = Fnv(&bits, 4, h);
    const bool nan = (b & 0x7FFF) > 0x7C00;
    EXPECT_EQ(v != v, nan);
    EXPECT_EQ(FloatToFp16(v), nan ? b | 0x200 : b);
    if (HaveCudaOracle() && !nan) {
      ASSERT_EQ(bits, Bits(CudaFp16ToFloat(static_cast<uint16_t>(b)))) << b;
    }
  }
  EXPECT_EQ(h, 0xa7a575fd4882f925) << std::hex << h;
}

// The formats are constexpr: the compiler evaluates them to the same values.
static_assert(FloatToE4m3(448.0f) == 0x7E && FloatToE2m1(-2.5f) == 12 && FloatToBf16(1.00390625f) == 0x3F80);
static_assert(FloatToFp16(65519.0f) == 0x7BFF && FloatToE5m2(1e9f) == 0x7B && E4m3ToFloat(0x01) == 0x1p-9f);

// User case T16 (reports 25, 29, 42, 46 of the survey of users' troubles).
TEST(UserCase, T16CodecTables) {
  EXPECT_EQ(E4m3ToFloat(0x01), 0x1p-9f);
  EXPECT_EQ(E4m3ToFloat(0x07), 0.013671875f);
  EXPECT_EQ(E4m3ToFloat(0x08), 0x1p-6f);
  EXPECT_EQ(E4m3ToFloat(0x38), 1.0f);
  EXPECT_EQ(E4m3ToFloat(0x7E), 448.0f);
  EXPECT_TRUE(std::isnan(E4m3ToFloat(0x7F)) && std::isnan(E4m3ToFloat(0xFF)));
  EXPECT_EQ(E4m3ToFloat(0x81), -0x1p-9f);
  EXPECT_EQ(FloatToE4m3(0x1p-10f), 0x00);
  EXPECT_EQ(FloatToE4m3(std::nextafter(0x1p-10f, 1.0f)), 0x01);
  for (float v : {448.0f, 449.0f, 480.0f, 1e9f, INFINITY}) EXPECT_EQ(FloatToE4m3(v), 0x7E) << v;
  const std::vector<std::pair<float, float>> e2m1 = {{0.25f, 0}, {0.75f, 1}, {1.25f, 1}, {1.75f, 2}, {2.5f, 2}, {3.5f, 4}, {5, 4}, {5.01f, 6}, {7, 6}};
  for (auto [in, out] : e2m1) {
    EXPECT_EQ(E2m1ToFloat(FloatToE2m1(in)), out) << in;
    EXPECT_EQ(E2m1ToFloat(FloatToE2m1(-in)), -out) << in;
  }
  EXPECT_EQ(E2m1ToFloat(UnpackE2m1Even(0x21)), 0.5f);
  EXPECT_EQ(E2m1ToFloat(UnpackE2m1Odd(0x21)), 1.0f);
}

// Case T14: the E4M3 encoder, saturating column.
TEST(NumericsCase, T14E4m3Encoder) {
  const std::vector<std::pair<float, int>> rows = {{464, 0x7E}, {464.01f, 0x7E}, {0x1p-10f, 0}, {1.0001f * 0x1p-10f, 1},
                                                   {2.5f * 0x1p-9f, 2}, {7.5f * 0x1p-9f, 8}, {17, 0x58}, {19, 0x5A}};
  for (auto [in, out] : rows) EXPECT_EQ(FloatToE4m3(in), out) << in;
}

// Case T16 of the numerics paper: codes 0..15 in order.
TEST(NumericsCase, T16StandardPacking) {
  const std::vector<uint8_t> want = {0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE};
  for (uint8_t j = 0; j < 8; ++j) {
    EXPECT_EQ(PackE2m1(2 * j, 2 * j + 1), want[j]);
    EXPECT_EQ(UnpackE2m1Even(want[j]), 2 * j);
    EXPECT_EQ(UnpackE2m1Odd(want[j]), 2 * j + 1);
  }
}

}  // namespace
}  // namespace halfbyte::numerics
