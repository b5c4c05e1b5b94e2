// Parts that both quantizers share: blocks into lanes, E4M3 of a vector of scales, E2M1 codes, the loop over groups of blocks.
//
// A group is Lanes::kLanes blocks; x[i] holds element i of all of them. Everything is vertical, so the order of each block's sum is
// the specification's. Groups are taken kBatch at a time and every step is done for all of them before the next: a group's steps wait
// for each other (amax, two divisions, the scale, 16 additions in order), and one group's instructions already fill a reorder buffer.
// Include lanes_<isa>.h first.
#pragma once

#include <cstring>

#include "tensor/dtype.h"

namespace halfbyte::kernels::quantize {
namespace {

constexpr int kElements = 16;  // of a block
using F = Lanes::F;
using I = Lanes::I;

constexpr int kBatch = 4;      // 4 KiB of FP32 with AVX-512

struct Group {
  alignas(64) float x[kElements][Lanes::kLanes];
};

inline F MagnitudeOf(F x) { return Lanes::And(x, Lanes::SetI(0x7FFFFFFF)); }

inline F AmaxOf(const Group& g) {
  F best[4];
  for (int k = 0; k < 4; ++k) best[k] = MagnitudeOf(Lanes::Load(g.x[k]));
#pragma GCC unroll 12
  for (int i = 4; i < kElements; ++i) best[i % 4] = Lanes::Max(best[i % 4], MagnitudeOf(Lanes::Load(g.x[i])));
  return Lanes::Max(Lanes::Max(best[0], best[1]), Lanes::Max(best[2], best[3]));
}

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

// The value of an E4M3 byte 0..0x7E.
inline F DecodeE4m3(I byte) {
  const F normal = Lanes::FromBits(Lanes::AddI(Lanes::Sll<20>(byte), Lanes::SetI(120u << 23)));
  const F shifted = Lanes::FromBits(Lanes::AddI(byte, Lanes::SetI(0x46800000)));  // 2^14 + byte * 2^-9
  const F subnormal = Lanes::Sub(shifted, Lanes::Set(0x1p14f));
  return Lanes::SelectLess(subnormal, Lanes::Set(0x1p-6f), subnormal, normal);
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

// quantize(groups, n, codes, scales) for all blocks, n <= kBatch groups a call.
template <void (*kLoad)(const void*, Group&), int kBytes, typename QuantizeBatch>
void ForBatches(const void* src, int64_t blocks, uint8_t* codes, uint8_t* scales, const QuantizeBatch& quantize) {
  constexpr int64_t kGroupBytes = Lanes::kLanes * kElements * kBytes;
  const char* in = static_cast<const char*>(src);
  Group batch[kBatch];
  const int64_t groups = blocks / Lanes::kLanes;
  for (int64_t g = 0; g < groups; g += kBatch) {
    const int n = static_cast<int>(groups - g < kBatch ? groups - g : kBatch);
    for (int k = 0; k < n; ++k) kLoad(in + (g + k) * kGroupBytes, batch[k]);
    quantize(batch, n, codes + g * Lanes::kLanes * 8, scales + g * Lanes::kLanes);
  }
  const int64_t done = groups * Lanes::kLanes, rest = blocks - done;
  if (rest == 0) return;
  alignas(64) char padded[kGroupBytes] = {};  // with zero blocks
  uint8_t rest_codes[Lanes::kLanes * 8], rest_scales[Lanes::kLanes];
  std::memcpy(padded, in + groups * kGroupBytes, rest * kElements * kBytes);
  kLoad(padded, batch[0]);
  quantize(batch, 1, rest_codes, rest_scales);
  std::memcpy(codes + done * 8, rest_codes, rest * 8);
  std::memcpy(scales + done, rest_scales, rest);
}

// The same for a source of type kBF16, kF16 or kF32.
template <typename QuantizeBatch>
void ForBatches(const void* src, tensor::DType dtype, int64_t blocks, uint8_t* codes, uint8_t* scales, const QuantizeBatch& quantize) {
  if (dtype == tensor::DType::kBF16) return ForBatches<LoadBf16, 2>(src, blocks, codes, scales, quantize);
  if (dtype == tensor::DType::kF16) return ForBatches<LoadF16, 2>(src, blocks, codes, scales, quantize);
  ForBatches<LoadF32, 4>(src, blocks, codes, scales, quantize);
}

}  // namespace
}  // namespace halfbyte::kernels::quantize
