// E8M0: a power of two, 2^(byte-127), 0xFF = NaN. The block scale of MXFP4 and MXFP8 and of "ue8m0" FP8 checkpoints.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace halfbyte::numerics {

// Byte 0 is 2^-127, an FP32 subnormal (some kernels read it as 1.0; the OCP format does not).
constexpr float E8m0ToFloat(uint8_t code) {
  if (code == 0xFF) return std::numeric_limits<float>::quiet_NaN();
  if (code == 0) return 0x1p-127f;
  return std::bit_cast<float>(static_cast<uint32_t>(code) << 23);
}

// True if value is one of the 255 powers of two (an FP32 scale of a "ue8m0" file must be).
constexpr bool IsE8m0(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t exponent = bits >> 23;
  return bits == 0x00400000 || (exponent > 0 && exponent < 0xFF && (bits & 0x7FFFFF) == 0);
}

}  // namespace halfbyte::numerics
