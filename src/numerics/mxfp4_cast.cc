#include "numerics/mxfp4_cast.h"

#include <array>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "numerics/block_quantizer.h"
#include "numerics/e8m0.h"

namespace halfbyte::numerics {
namespace {

constexpr int kMaxScaleExponent = 8;    // 2^8 = 256 is the largest power of two in E4M3
constexpr int kMinScaleExponent = -9;   // 2^-9 is its smallest subnormal

uint8_t WithoutNegativeZero(uint8_t byte) {
  if ((byte & 0x0F) == 0x08) byte &= 0xF0;
  if ((byte & 0xF0) == 0x80) byte &= 0x0F;
  return byte;
}

void DecodeMxBlock(const uint8_t* codes, uint8_t e8m0, float* out) {
  const float scale = E8m0ToFloat(e8m0);
  for (int j = 0; j < kMxBlock / 2; ++j) {
    out[2 * j] = E2m1ToFloat(UnpackE2m1Even(codes[j])) * scale;
    out[2 * j + 1] = E2m1ToFloat(UnpackE2m1Odd(codes[j])) * scale;
  }
}

// Both halves of a block that E4M3 cannot reach: ModelOpt's rule on the decoded values. True if that can have changed a value.
bool Requantize(const uint8_t* codes, uint8_t e8m0, float ws2, uint8_t* out_codes, uint8_t* out_scales) {
  std::array<float, kMxBlock> values;
  DecodeMxBlock(codes, e8m0, values.data());
  for (int half = 0; half < 2; ++half) {
    const Nvfp4Block block = QuantizeBlockModelopt(BlockInput(values.data() + half * kBlock, kBlock), ws2);
    std::memcpy(out_codes + half * (kBlock / 2), block.codes.data(), kBlock / 2);
    out_scales[half] = block.scale;
  }
  for (float v : values) if (v != 0) return true;
  return false;
}

}  // namespace

std::optional<int> MxMaxExponent(std::span<const uint8_t> e8m0) {
  std::optional<int> k_max;
  for (uint8_t byte : e8m0) {
    if (byte != 0 && byte != 0xFF && (!k_max || MxExponent(byte) > *k_max)) k_max = MxExponent(byte);
  }
  return k_max;
}

float MxWs2(std::optional<int> k_max) {
  if (!k_max) return 1.0f;
  const int exponent = *k_max - kMaxScaleExponent;  // -134 .. 119: the lowest are FP32 subnormals, still exact
  return exponent >= -126 ? std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23)
                          : std::bit_cast<float>(1u << (exponent + 149));
}

MxCastResult CastMxfp4(const uint8_t* codes, const uint8_t* e8m0, int64_t rows, int64_t cols, std::optional<int> k_max,
                       uint8_t* out_codes, uint8_t* out_scales) {
  HB_CHECK(cols % kMxBlock == 0, cols, " columns are not a multiple of 32");
  const float ws2 = MxWs2(k_max);
  MxCastResult result;
  for (int64_t b = 0; b < rows * cols / kMxBlock; ++b) {
    const uint8_t* in = codes + b * (kMxBlock / 2);
    uint8_t* out = out_codes + b * (kMxBlock / 2);
    if (e8m0[b] == 0xFF) ++result.nan_scales;
    const int relative = k_max ? MxExponent(e8m0[b]) - (*k_max - kMaxScaleExponent) : kMinScaleExponent - 1;
    if (relative < kMinScaleExponent || relative > kMaxScaleExponent) {
      result.requantized += Requantize(in, e8m0[b], ws2, out, out_scales + 2 * b);
      continue;
    }
    for (int j = 0; j < kMxBlock / 2; ++j) out[j] = WithoutNegativeZero(in[j]);
    const uint8_t scale = FloatToE4m3(std::bit_cast<float>(static_cast<uint32_t>(relative + 127) << 23));
    out_scales[2 * b] = out_scales[2 * b + 1] = scale;
  }
  return result;
}

void DecodeMxfp4(const uint8_t* codes, const uint8_t* e8m0, int64_t rows, int64_t cols, float* out) {
  HB_CHECK(cols % kMxBlock == 0, cols, " columns are not a multiple of 32");
  for (int64_t b = 0; b < rows * cols / kMxBlock; ++b) DecodeMxBlock(codes + b * (kMxBlock / 2), e8m0[b], out + b * kMxBlock);
}

}  // namespace halfbyte::numerics
