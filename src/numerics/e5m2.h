// E5M2: the upper byte of an FP16 (1-5-2, bias 15, largest 57344 = 0x7B, infinity 0x7C, NaN 0x7D..0x7F).
#pragma once

#include <bit>
#include <cstdint>

#include "numerics/fp16.h"

namespace halfbyte::numerics {

constexpr float E5m2ToFloat(uint8_t code) { return Fp16ToFloat(static_cast<uint16_t>(code << 8)); }

// Round to nearest, ties to even, saturating at 57344 (infinity too); NaN gives 0x7F. Straight from FP32: going through FP16
// would round twice.
constexpr uint8_t FloatToE5m2(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint8_t sign = static_cast<uint8_t>((bits >> 24) & 0x80);
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return 0x7F;
  if (magnitude >= 0x47600000) return sign | 0x7B;  // 57344 and more
  if (magnitude < 0x38800000) {  // below 2^-14: adding 2^7 puts units of 2^-16 into the lowest bits
    const float shifted = std::bit_cast<float>(magnitude) + 0x1p7f;
    return sign | static_cast<uint8_t>(std::bit_cast<uint32_t>(shifted) & 0x7);
  }
  return sign | static_cast<uint8_t>((magnitude + 0xFFFFF + ((magnitude >> 21) & 1) - (112u << 23)) >> 21);
}

}  // namespace halfbyte::numerics
