// E2M1, the 4-bit element: 1-2-1, values 0 0.5 1 1.5 2 3 4 6 (codes 0..7) and their negatives (8..15, 8 = -0). No NaN, no infinity.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace halfbyte::numerics {

inline constexpr std::array<float, 16> kE2m1Values = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                                      -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

constexpr float E2m1ToFloat(uint8_t code) { return kE2m1Values[code & 15]; }

// The magnitude's code 0..7: nearest, ties to the even code, saturating at 6. The comparisons spell the ties out: at 0.75, 1.75 and
// 3.5 the upper neighbour is even, at 0.25, 1.25, 2.5 and 5 the lower. They are written with "not" so that a NaN runs through to
// code 7, as it does in NVIDIA's conversion and off the end of ModelOpt's search.
constexpr uint8_t E2m1Magnitude(float magnitude) {
  uint8_t code = 0;
  code += !(magnitude <= 0.25f);
  code += !(magnitude < 0.75f);
  code += !(magnitude <= 1.25f);
  code += !(magnitude < 1.75f);
  code += !(magnitude <= 2.5f);
  code += !(magnitude < 3.5f);
  code += !(magnitude <= 5.0f);
  return code;
}

constexpr float Magnitude(float value) { return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0x7FFFFFFF); }

// The hardware's form: the sign bit is kept, so -0.0 gives 8; NaN gives 7 whatever its sign.
constexpr uint8_t FloatToE2m1(float value) {
  const uint8_t code = E2m1Magnitude(Magnitude(value));
  return value != value ? 7 : static_cast<uint8_t>(code | (std::bit_cast<uint32_t>(value) >> 31 << 3));
}

// ModelOpt's form: negative means value < 0, so -0.0 gives 0 (and -1e-30, which rounds to zero, gives 8).
constexpr uint8_t FloatToE2m1Modelopt(float value) {
  return static_cast<uint8_t>(E2m1Magnitude(Magnitude(value)) | (value < 0 ? 8 : 0));
}

// Two codes a byte: the element with the even index is the low nibble.
constexpr uint8_t PackE2m1(uint8_t even, uint8_t odd) { return static_cast<uint8_t>((even & 15) | (odd << 4)); }
constexpr uint8_t UnpackE2m1Even(uint8_t byte) { return byte & 15; }
constexpr uint8_t UnpackE2m1Odd(uint8_t byte) { return byte >> 4; }

}  // namespace halfbyte::numerics
