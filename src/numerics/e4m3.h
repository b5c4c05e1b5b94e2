// E4M3 (FP8 "fn" form): 1-4-3, bias 7, largest 448 = 0x7E, no infinity, NaN = 0x7F and 0xFF, smallest subnormal 2^-9.
// The block scale of NVFP4 (never negative there) and the element of FP8 weights.
#pragma once

#include <bit>
#include <cstdint>

namespace halfbyte::numerics {

constexpr float E4m3ToFloat(uint8_t code) {
  const uint32_t magnitude = code & 0x7F;
  const uint32_t sign = static_cast<uint32_t>(code & 0x80) << 24;
  if (magnitude == 0x7F) return std::bit_cast<float>(sign | 0x7FC00000);
  if (magnitude < 0x08) return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-9f));
  return std::bit_cast<float>(sign | ((magnitude << 20) + (120u << 23)));
}

// Round to nearest, ties to even, saturating: everything above 448 and infinity give 0x7E. (PyTorch before 2.15 made 464.01 a NaN;
// that NaN once reached published files, so we follow CUDA's satfinite form.) Subnormals are kept: a tie at 2^-10 goes to 0.
// NaN gives 0x7F: no caller passes one, since a matrix with NaN is refused before it is quantized.
constexpr uint8_t FloatToE4m3(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint8_t sign = static_cast<uint8_t>((bits >> 24) & 0x80);
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return 0x7F;
  if (magnitude >= 0x43E00000) return sign | 0x7E;  // 448 and more
  if (magnitude < 0x3C800000) {  // below 2^-6: adding 2^14 puts units of 2^-9 into the lowest bits
    const float shifted = std::bit_cast<float>(magnitude) + 0x1p14f;
    return sign | static_cast<uint8_t>(std::bit_cast<uint32_t>(shifted) & 0xF);
  }
  return sign | static_cast<uint8_t>((magnitude + 0x7FFFF + ((magnitude >> 20) & 1) - (120u << 23)) >> 20);
}

// A byte that no right scale tensor holds.
constexpr bool IsE4m3Nan(uint8_t code) { return (code & 0x7F) == 0x7F; }

}  // namespace halfbyte::numerics
