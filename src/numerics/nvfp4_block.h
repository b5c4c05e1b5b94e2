// The NVFP4 block: 16 E2M1 codes under one E4M3 scale; above it one FP32 scale per tensor (weights, static activations) or per row.
//   value = E2M1(code) * E4M3(scale) * ws2
// Code times block scale has at most 6 significant bits and is exact in FP32 and even in BF16; only the product with ws2 rounds.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>

#include "numerics/e2m1.h"
#include "numerics/e4m3.h"

namespace halfbyte::numerics {

inline constexpr int kBlock = 16;          // elements under one scale (G in the notation of the kernels)
inline constexpr float kE2m1Max = 6.0f;
inline constexpr float kE4m3Max = 448.0f;
inline constexpr float k2688 = 2688.0f;    // 6 * 448: the largest code times the largest block scale
// fl(1/6) and fl(1/2688): what "divide by 6" becomes where a compiler or PyTorch on CUDA multiplies by the reciprocal.
inline constexpr float kReciprocal6 = std::bit_cast<float>(0x3E2AAAABu);
inline constexpr float kReciprocal2688 = std::bit_cast<float>(0x39C30C31u);

struct Nvfp4Block {
  std::array<uint8_t, kBlock / 2> codes;  // element 2j is the low nibble of byte j
  uint8_t scale;                          // E4M3
  constexpr bool operator==(const Nvfp4Block&) const = default;
};

constexpr uint8_t CodeAt(const Nvfp4Block& block, int i) {
  return i % 2 ? UnpackE2m1Odd(block.codes[i / 2]) : UnpackE2m1Even(block.codes[i / 2]);
}

// Element i without the FP32 scale (exact).
constexpr float ScaledValueAt(const Nvfp4Block& block, int i) { return E2m1ToFloat(CodeAt(block, i)) * E4m3ToFloat(block.scale); }

constexpr void DecodeBlock(const Nvfp4Block& block, float ws2, std::span<float, kBlock> out) {
  for (int i = 0; i < kBlock; ++i) out[i] = ScaledValueAt(block, i) * ws2;
}

constexpr Nvfp4Block PackBlock(const std::array<uint8_t, kBlock>& codes, uint8_t scale) {
  Nvfp4Block block{.codes = {}, .scale = scale};
  for (int j = 0; j < kBlock / 2; ++j) block.codes[j] = PackE2m1(codes[2 * j], codes[2 * j + 1]);
  return block;
}

constexpr float BlockAmax(std::span<const float, kBlock> x) {
  float amax = 0;
  for (float v : x) amax = Magnitude(v) > amax ? Magnitude(v) : amax;  // a NaN compares false and is passed over
  return amax;
}

// codes U8 [rows, cols/2], scales U8 [rows, cols/16] -> out F32 [rows, cols]; cols % 16 == 0.
void DecodeMatrix(const uint8_t* codes, const uint8_t* scales, float ws2, int64_t rows, int64_t cols, float* out);

}  // namespace halfbyte::numerics
