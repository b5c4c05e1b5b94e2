// ModelOpt's dynamic path on blocks in lanes: QuantizeBlockModelopt (numerics/block_quantizer.h), vertically.
#pragma once

#include "kernels/cpu/quantize/block_lanes.h"

namespace halfbyte::kernels::quantize {
namespace {

// a / b, correctly rounded, without a division: y = rn(1/b). After one correction q is within one unit of the quotient, its remainder is
// exact, and the second correction rounds right (Markstein, "Computation of elementary functions on the IBM RISC System/6000", 1990).
// A vector division takes 10 to 16 cycles here, this 2.5. It needs a remainder that is no subnormal, a >= 2^-100; below, the quotient
// is so small (kMinModeloptWs2) that its code is 0 however it is rounded. An overflow ends as NaN, which Min takes for a large value.
inline F Quotient(F a, F b, F y) {
  const F q0 = Lanes::Mul(a, y);
  const F q1 = Lanes::MulAdd(Lanes::NegMulAdd(b, q0, a), y, q0);
  return Lanes::MulAdd(Lanes::NegMulAdd(b, q1, a), y, q1);
}

// Codes of one group under its scales; writes both. The divisor is twice the decoded scale, so that the quotients are halved, exactly
// (MaxModeloptWs2), as E2m1Bits wants them.
inline void EncodeModelopt(const Group& g, const Scale& scale, float ws2, uint8_t* codes, uint8_t* scales) {
  Lanes::StoreScales(scale.byte, scales);
  const F divisor = Lanes::Mul(Lanes::Mul(scale.value, Lanes::Set(ws2)), Lanes::Set(2.0f));
  const F reciprocal = Lanes::Div(Lanes::Set(1.0f), divisor);
  I nibbles[2];
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    I n = Lanes::SetI(0);
#pragma GCC unroll 8
    for (int i = 7; i >= 0; --i) {
      const F x = Lanes::Add(Lanes::Load(g.x[8 * half + i]), Lanes::Set(0.0f));  // -0.0 becomes +0.0: its code is 0
      n = AppendCode(n, E2m1Bits(Quotient(MagnitudeOf(x), divisor, reciprocal)), x);
    }
    nibbles[half] = n;
  }
  Lanes::StoreCodes(nibbles[0], nibbles[1], codes);
}

// ModelOpt's clamp: E4M3 of s between 2^-9 and 448 (EncodeE4m3 saturates by itself).
inline Scale ClampedScale(F s) { return EncodeE4m3(Lanes::Max(s, Lanes::Set(0x1p-9f))); }

struct Modelopt {
  float ws2;

  void operator()(const Group* batch, int n, uint8_t* codes, uint8_t* scales) const {
    Scale scale[kBatch];
    for (int k = 0; k < n; ++k) {
      const F s = Lanes::Div(AmaxOf(batch[k]), Lanes::Set(6.0f * ws2));
      scale[k] = ClampedScale(Lanes::SelectLess(Lanes::Set(0.0f), s, s, Lanes::Set(1.0f)));
    }
    for (int k = 0; k < n; ++k) EncodeModelopt(batch[k], scale[k], ws2, codes + k * Lanes::kLanes * 8, scales + k * Lanes::kLanes);
  }
};

}  // namespace
}  // namespace halfbyte::kernels::quantize
