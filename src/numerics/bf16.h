// BF16: the upper half of an FP32. Conversions as PyTorch, x86 and NVIDIA do them: round to nearest, ties to even.
#pragma once

#include <bit>
#include <cstdint>

namespace halfbyte::numerics {

constexpr float Bf16ToFloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// Overflow rounds to infinity; subnormals are kept (AVX512_BF16's vcvtneps2bf16 flushes them, so kernels may use it only where
// none can occur). A NaN stays a NaN with its sign, quiet: adding the rounding constant could otherwise carry it into -0.0.
constexpr uint16_t FloatToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

constexpr float RoundToBf16(float value) { return Bf16ToFloat(FloatToBf16(value)); }

}  // namespace halfbyte::numerics
