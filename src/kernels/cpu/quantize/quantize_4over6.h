// The load-time contract on blocks in lanes: the operations of EvaluateFourOverSix (numerics/block_quantizer.h), vertically.
//
// About 21 vector operations an element for both candidates' errors and 11 for the winner's codes. Errors use |x|: rounding is
// symmetric, so the squares are the same. Codes are made a second time for the winner, which is cheaper than packing both.
#pragma once

#include "kernels/cpu/quantize/block_lanes.h"

namespace halfbyte::kernels::quantize {
namespace {

struct FourOverSixGroup {
  float gs, gd;

  struct Candidate {
    Scale scale;
    F inverse;
    F error;
  };

  Candidate Begin(F scaled_amax) const {
    Candidate c{.scale = EncodeE4m3(scaled_amax)};
    const F inverse = Lanes::Div(Lanes::Set(1.0f), Lanes::Mul(c.scale.value, Lanes::Set(gd)));
    c.inverse = Lanes::Min(inverse, Lanes::Set(0x1.fffffep127f));  // FLT_MAX under a scale of zero
    c.error = Lanes::Set(0.0f);
    return c;
  }

  static void AddError(Candidate& c, F magnitude, F reference) {
    const F decoded = RoundE2m1(Lanes::Mul(magnitude, c.inverse));
    const F difference = Lanes::MulSub(decoded, c.scale.value, reference);  // code * scale is exact: one rounding, as in the contract
    const F square = Lanes::Mul(difference, difference);
    c.error = Lanes::Add(c.error, square);
  }

  void operator()(Group& g, uint8_t* codes, uint8_t* scales) const {
    const I magnitude_bits = Lanes::SetI(0x7FFFFFFF);
    F amax = Lanes::And(Lanes::Load(g.x[0]), magnitude_bits);
#pragma GCC unroll 16
    for (int i = 1; i < kElements; ++i) amax = Lanes::Max(amax, Lanes::And(Lanes::Load(g.x[i]), magnitude_bits));

    const F scaled6 = Lanes::Mul(Lanes::Div(amax, Lanes::Set(6.0f)), Lanes::Set(gs));
    Candidate six = Begin(scaled6), four = Begin(Lanes::Mul(scaled6, Lanes::Set(1.5f)));
#pragma GCC unroll 16
    for (int i = 0; i < kElements; ++i) {
      const F magnitude = Lanes::And(Lanes::Load(g.x[i]), magnitude_bits);
      const F reference = Lanes::Mul(magnitude, Lanes::Set(gs));
      AddError(six, magnitude, reference);
      AddError(four, magnitude, reference);
    }
    Lanes::StoreScales(Lanes::SelectLess(four.error, six.error, four.scale.byte, six.scale.byte), scales);

    // Half the inverse gives half the quotients, exactly; what E2m1Bits wants.
    const F inverse = Lanes::Mul(Lanes::SelectLess(four.error, six.error, four.inverse, six.inverse), Lanes::Set(0.5f));
    I nibbles[2];
    for (int half = 0; half < 2; ++half) {
      I n = Lanes::SetI(0);
#pragma GCC unroll 8
      for (int i = 7; i >= 0; --i) {
        const F x = Lanes::Load(g.x[8 * half + i]);
        n = AppendCode(n, E2m1Bits(Lanes::Mul(Lanes::And(x, magnitude_bits), inverse)), x);
      }
      nibbles[half] = Lanes::SelectLess(Lanes::Set(0.0f), amax, n, Lanes::SetI(0));  // a zero block has no sign bits either
    }
    Lanes::StoreCodes(nibbles[0], nibbles[1], codes);
  }
};

}  // namespace
}  // namespace halfbyte::kernels::quantize
