// Parts that both quantizers share: blocks into lanes, E4M3 of a vector of scales, E2M1 codes, the loop over groups of blocks.
//
// A group is Lanes::kLanes blocks; x[i] holds element i of all of them. Everything is vertical, so the order of each block's sum is
// the specification's. Include lanes_<isa>.h first.
#pragma once

#include <cstring>

#include "tensor/dtype.h"

namespace halfbyte::kernels::quantize {
namespace {

constexpr int kElements = 16;  // of a block
using F = Lanes::F;
using I = Lanes::I;

struct Group {
  alignas(64) float x[kElements][Lanes::kLanes];
};

inline void LoadBf16(const void* src, Group& g) {
  I d[8];
  Lanes::Transpose8(static_cast<const char*>(src), 32, d);
  const I upper = Lanes::SetI(0xFFFF0000);
  for (int j = 0; j < 8; ++j) {
    Lanes::Store(g.x[2 * j], Lanes::FromBits(Lanes::Sll<16>(d[j])));
    Lanes::Store(g.x[2 * j + 1], Lanes::FromBits(Lanes::AndI(d[j], upper)));
  }
}

inline void LoadF32(const void* src, Group& g) {
  for (int half = 0; half < 2; ++half) {
    I d[8];
    Lanes::Transpose8(static_cast<const char*>(src) + 32 * half, 64, d);
    for (int j = 0; j < 8; ++j) Lanes::Store(g.x[8 * half + j], Lanes::FromBits(d[j]));
  }
}

inline void LoadF16(const void* src, Group& g) {
  alignas(64) float rows[Lanes::kLanes * kElements];
  for (int b = 0; b < Lanes::kLanes; ++b) Lanes::HalfToFloat(static_cast<const char*>(src) + 32 * b, rows + kElements * b);
  LoadF32(rows, g);
}

struct Scale {
  I byte;
  F value;
};

// E4M3 of v >= 0: nearest even, saturating at 448, subnormals kept; and its value. Below 2^-6 adding 2^14 rounds to a multiple of 2^-9.
inline Scale EncodeE4m3(F v) {
  v = Lanes::Min(v, Lanes::Set(448.0f));
  const I bits = Lanes::Bits(v);
  const I odd = Lanes::AndI(Lanes::Srl<20>(bits), Lanes::SetI(1));
  const I rounded = Lanes::AddI(Lanes::AddI(bits, Lanes::SetI(0x7FFFF)), odd);
  const I normal = Lanes::Srl<20>(Lanes::SubI(rounded, Lanes::SetI(120u << 23)));
  const F shifted = Lanes::Add(v, Lanes::Set(0x1p14f));
  const I subnormal = Lanes::AndI(Lanes::Bits(shifted), Lanes::SetI(0xF));
  const F edge = Lanes::Set(0x1p-6f);
  return {Lanes::SelectLess(v, edge, subnormal, normal),
          Lanes::SelectLess(v, edge, Lanes::Sub(shifted, Lanes::Set(0x1p14f)), Lanes::And(Lanes::FromBits(rounded), Lanes::SetI(0xFFF00000)))};
}

// E2M1 rounding of v >= 0. With p = max(2^floor(log2 v), 1) the grid's step is p/2, which is the unit in the last place of 2^22 * p:
// the addition rounds to it, ties to the even multiple, and at each of E2M1's ties the even multiple is the even code (0.75 -> 1,
// 1.25 -> 1, 2.5 -> 2, 3.5 -> 4, 5 -> 4). 2^22 * p is exact, so the fused form rounds once, as the addition alone would.
inline F E2m1Power(F v, F one) { return Lanes::Max(Lanes::And(v, Lanes::SetI(0x7F800000)), one); }

// The rounded value; above 6 it saturates. A v so large that 2^22 * p overflows gives NaN or infinity, which Min turns into 6.
inline F RoundE2m1(F v) {
  const F p = E2m1Power(v, Lanes::Set(1.0f)), c = Lanes::Set(0x1p22f);
  return Lanes::Min(Lanes::NegMulAdd(p, c, Lanes::MulAdd(p, c, v)), Lanes::Set(6.0f));
}

// The code of 2 * half_v in the lowest three bits (others are garbage). The sum's lowest bits are the multiple of the step, and two
// codes a binade come from its exponent field: with halved values that is 2 * (148 + e), a multiple of 8 plus 2e.
inline I E2m1Bits(F half_v) {
  const F v = Lanes::Min(half_v, Lanes::Set(3.0f));
  const I sum = Lanes::Bits(Lanes::MulAdd(E2m1Power(v, Lanes::Set(0.5f)), Lanes::Set(0x1p22f), v));
  return Lanes::AddI(sum, Lanes::Srl<22>(sum));
}

// Appends a nibble below the ones already there: the sign bit of x over the code.
inline I AppendCode(I nibbles, I code_bits, F x) {
  const I with_sign = Lanes::SelectBits(Lanes::SetI(7), code_bits, Lanes::Srl<28>(Lanes::Bits(x)));
  return Lanes::SelectBits(Lanes::SetI(15), with_sign, Lanes::Sll<4>(nibbles));
}

template <void (*kLoad)(const void*, Group&), int kBytes, typename QuantizeGroup>
void ForGroups(const void* src, int64_t blocks, uint8_t* codes, uint8_t* scales, const QuantizeGroup& quantize) {
  constexpr int64_t kBlockBytes = kElements * kBytes;
  const char* in = static_cast<const char*>(src);
  Group g;
  int64_t b = 0;
  for (; b + Lanes::kLanes <= blocks; b += Lanes::kLanes) {
    kLoad(in + b * kBlockBytes, g);
    quantize(g, codes + b * 8, scales + b);
  }
  if (b == blocks) return;
  alignas(64) char rest[Lanes::kLanes * kBlockBytes] = {};  // padded with zero blocks
  uint8_t rest_codes[Lanes::kLanes * 8], rest_scales[Lanes::kLanes];
  std::memcpy(rest, in + b * kBlockBytes, (blocks - b) * kBlockBytes);
  kLoad(rest, g);
  quantize(g, rest_codes, rest_scales);
  std::memcpy(codes + b * 8, rest_codes, (blocks - b) * 8);
  std::memcpy(scales + b, rest_scales, blocks - b);
}

// quantize(Group&, codes, scales) for every group of a source of type kBF16, kF16 or kF32.
template <typename QuantizeGroup>
void ForGroups(const void* src, tensor::DType dtype, int64_t blocks, uint8_t* codes, uint8_t* scales, const QuantizeGroup& quantize) {
  if (dtype == tensor::DType::kBF16) return ForGroups<LoadBf16, 2>(src, blocks, codes, scales, quantize);
  if (dtype == tensor::DType::kF16) return ForGroups<LoadF16, 2>(src, blocks, codes, scales, quantize);
  ForGroups<LoadF32, 4>(src, blocks, codes, scales, quantize);
}

}  // namespace
}  // namespace halfbyte::kernels::quantize
