// MXFP4 (E2M1 under one power of two per 32) to NVFP4 without loss: the codes stay, the power of two becomes an E4M3 block scale,
// twice, relative to ws2 = 2^(k_max - 8). numerics-and-formats 4.6; the arithmetic of ModelOpt's cast.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "numerics/nvfp4_block.h"

namespace halfbyte::numerics {

inline constexpr int kMxBlock = 32;

// k of a scale byte: its value is 2^k. Byte 0 (2^-127, in practice "a zero block") does not count for the maximum.
constexpr int MxExponent(uint8_t e8m0) { return static_cast<int>(e8m0) - 127; }

// The largest exponent over non-zero bytes, or nothing if all are zero. Gate and up of one expert are cast with one k_max.
std::optional<int> MxMaxExponent(std::span<const uint8_t> e8m0);

// 2^(k_max - 8), so that the largest block gets scale 256; 1.0 without any exponent.
float MxWs2(std::optional<int> k_max);

struct MxCastResult {
  int64_t requantized = 0;  // non-zero blocks out of E4M3's reach (more than 17 below k_max): quantized anew, scale clamped at 2^-9
  int64_t nan_scales = 0;   // scale bytes 0xFF: the tensor must be refused
};

// codes U8 [rows, cols/2] (low nibble = even column), e8m0 U8 [rows, cols/32], cols % 32 == 0 -> out_codes U8 [rows, cols/2],
// out_scales U8 [rows, cols/16]. -0 becomes +0, as in ModelOpt. Values are equal, bit for bit, in all blocks but the requantized.
MxCastResult CastMxfp4(const uint8_t* codes, const uint8_t* e8m0, int64_t rows, int64_t cols, std::optional<int> k_max,
                       uint8_t* out_codes, uint8_t* out_scales);

// Values of an MXFP4 matrix, F32 [rows, cols]: E2M1 * 2^k, exact.
void DecodeMxfp4(const uint8_t* codes, const uint8_t* e8m0, int64_t rows, int64_t cols, float* out);

}  // namespace halfbyte::numerics
