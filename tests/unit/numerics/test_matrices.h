// Inputs and notation of spec/numerics-and-formats.md section 7 and reference-behaviour.md 1.14.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "numerics/bf16.h"
#include "numerics/nvfp4_block.h"

namespace halfbyte::numerics::test {

inline float FromBits(uint32_t bits) { return std::bit_cast<float>(bits); }
inline uint32_t Bits(float v) { return std::bit_cast<uint32_t>(v); }
inline float Bf16Hex(uint16_t bits) { return Bf16ToFloat(bits); }

// "3D1A BB6B ..." -> values.
inline std::vector<float> Bf16Values(const std::string& hex) {
  std::vector<float> values;
  for (size_t i = 0; i + 4 <= hex.size(); i += 5) values.push_back(Bf16Hex(static_cast<uint16_t>(std::stoul(hex.substr(i, 4), nullptr, 16))));
  return values;
}

// The codes of a block as 16 hex digits, element 0 first (section 7's notation).
inline std::string CodeDigits(const Nvfp4Block& block) {
  std::string s;
  for (int i = 0; i < kBlock; ++i) s += "0123456789ABCDEF"[CodeAt(block, i)];
  return s;
}
inline std::string HexByte(uint8_t b) { return {"0123456789ABCDEF"[b >> 4], "0123456789ABCDEF"[b & 15]}; }
// "74 47C2E548661BF1C9": scale byte and code digits.
inline std::string Text(const Nvfp4Block& block) { return HexByte(block.scale) + " " + CodeDigits(block); }

inline uint64_t Fnv(const void* data, size_t bytes, uint64_t h = 0xCBF29CE484222325) {
  for (size_t i = 0; i < bytes; ++i) h = (h ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001B3;
  return h;
}
template <typename T>
uint64_t Fnv(const std::vector<T>& v) { return Fnv(v.data(), v.size() * sizeof(T)); }

inline constexpr int64_t kT17Rows = 64, kT17Cols = 256;

// T17's generator with its planted amax but without the other planted blocks, any number of rows of 256.
inline std::vector<float> T17Values(int64_t rows) {
  std::vector<float> w(rows * kT17Cols);
  for (uint64_t i = 0; i < w.size(); ++i) {
    uint64_t x = i + 0x9E3779B97F4A7C15;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    const uint64_t u = x ^ (x >> 31);
    w[i] = Bf16Hex(static_cast<uint16_t>(((u & 1) << 15) | ((114 + ((u >> 8) & 7)) << 7) | ((u >> 1) & 127)));
  }
  w[0] = Bf16Hex(0x3D73);
  return w;
}

// The 64x256 matrix of T17.
inline std::vector<float> T17Matrix() {
  std::vector<float> w = T17Values(kT17Rows);
  for (int c = 0; c < 16; ++c) w[kT17Cols + c] = 0;
  for (int c = 0; c < 16; ++c) w[2 * kT17Cols + c] *= 0x1p-24f;
  w[3 * kT17Cols] = -0.0f;
  w[3 * kT17Cols + 1] = Bf16Hex(0x8080);
  return w;
}

// 4096 rows, load-time contract, by reference/tools/nvfp4_ref.py. Among its 65,536 blocks are some whose two candidates are so close
// that merging a product and a sum into one rounding changes the pick (one block in 40,000 or so): T17's 1,024 blocks have none.
inline constexpr uint64_t kLargeOnlineCodes = 0x37DA900C759F2930, kLargeOnlineScales = 0x9AE512E641085671;

// Gaussian weights in BF16; the figures of spec section 6 are over such matrices.
inline std::vector<float> GaussianBf16(int64_t n, float sigma, uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::normal_distribution<float> gauss(0, sigma);
  std::vector<float> w(n);
  for (float& v : w) v = RoundToBf16(gauss(rng));
  return w;
}

}  // namespace halfbyte::numerics::test
