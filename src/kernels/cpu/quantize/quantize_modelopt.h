// ModelOpt's dynamic path on blocks in lanes: QuantizeBlockModelopt (numerics/block_quantizer.h), vertically.
#pragma once

#include "kernels/cpu/quantize/block_lanes.h"

namespace halfbyte::kernels::quantize {
namespace {

struct Modelopt {
  float ws2;

  // a / b, correctly rounded, without a division: y = rn(1/b). After one correction q is within one unit of the quotient, its remainder
  // is exact, and the second correction rounds right (Markstein, "Computation of elementary functions on the IBM RISC System/6000",
  // 1990). A vector division takes 10 to 16 cycles here, this 2.5. It needs a remainder that is no subnormal, a >= 2^-100; below, the
  // quotient is so small (kMinModeloptWs2) that its code is 0 however it is rounded. An overflow ends as NaN and is taken for a large v.
  static F Quotient(F a, F b, F y) {
    const F q0 = Lanes::Mul(a, y);
    const F q1 = Lanes::MulAdd(Lanes::NegMulAdd(b, q0, a), y, q0);
    return Lanes::MulAdd(Lanes::NegMulAdd(b, q1, a), y, q1);
  }

  // divisor: twice the decoded scale, so that the quotients are halved, exactly (MaxModeloptWs2), as E2m1Bits wants them.
  static void EncodeCodes(const Group& g, F divisor, F reciprocal, uint8_t* codes) {
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

  void operator()(const Group* batch, int n, uint8_t* codes, uint8_t* scales) const {
    F divisor[kBatch], reciprocal[kBatch];
    for (int k = 0; k < n; ++k) {
      F s = Lanes::Div(AmaxOf(batch[k]), Lanes::Set(6.0f * ws2));
      s = Lanes::SelectLess(Lanes::Set(0.0f), s, s, Lanes::Set(1.0f));
      const Scale scale = EncodeE4m3(Lanes::Max(s, Lanes::Set(0x1p-9f)));  // saturates at 448 by itself
      Lanes::StoreScales(scale.byte, scales + k * Lanes::kLanes);
      divisor[k] = Lanes::Mul(Lanes::Mul(scale.value, Lanes::Set(ws2)), Lanes::Set(2.0f));
      reciprocal[k] = Lanes::Div(Lanes::Set(1.0f), divisor[k]);
    }
    for (int k = 0; k < n; ++k) EncodeCodes(batch[k], divisor[k], reciprocal[k], codes + k * Lanes::kLanes * 8);
  }
};

}  // namespace
}  // namespace halfbyte::kernels::quantize
