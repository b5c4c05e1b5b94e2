// FP16 (IEEE binary16): 1-5-10, bias 15, largest 65504, smallest subnormal 2^-24.
#pragma once

#include <bit>
#include <cstdint>

namespace halfbyte::numerics {

constexpr float Fp16ToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t magnitude = bits & 0x7FFF;
  if (magnitude >= 0x7C00) return std::bit_cast<float>(sign | 0x7F800000 | ((magnitude & 0x3FF) << 13));
  if (magnitude < 0x0400) {  // a multiple of 2^-24, exact in FP32
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
}

// Round to nearest, ties to even; above 65519.99 infinity; NaN stays a quiet NaN with its sign.
constexpr uint16_t FloatToFp16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return sign | 0x7E00 | static_cast<uint16_t>((magnitude >> 13) & 0x3FF);
  if (magnitude >= 0x477FF000) return sign | 0x7C00;  // 65520, the midpoint above the largest: to infinity
  if (magnitude < 0x38800000) {  // below 2^-14: adding 0.5 puts units of 2^-24 into the lowest bits, rounded by the FPU
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return sign | static_cast<uint16_t>(std::bit_cast<uint32_t>(shifted) - 0x3F000000);
  }
  return sign | static_cast<uint16_t>((magnitude + 0xFFF + ((magnitude >> 13) & 1) - (112u << 23)) >> 13);
}

}  // namespace halfbyte::numerics
