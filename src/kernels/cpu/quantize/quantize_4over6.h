// The load-time contract on blocks in lanes: the operations of EvaluateFourOverSix (numerics/block_quantizer.h), vertically.
//
// About 21 vector operations an element for both candidates' errors and 11 for the winner's codes. Errors use |x|: rounding is
// symmetric, so the squares are the same. Codes are made a second time for the winner, which is cheaper than packing both.
#pragma once

#include "kernels/cpu/quantize/block_lanes.h"

namespace halfbyte::kernels::quantize {
namespace {

struct FourOverSix {
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

  void AddErrors(const Group& g, Candidate& six, Candidate& four) const {
#pragma GCC unroll 16
    for (int i = 0; i < kElements; ++i) {
      const F magnitude = MagnitudeOf(Lanes::Load(g.x[i]));
      const F reference = Lanes::Mul(magnitude, Lanes::Set(gs));
      AddError(six, magnitude, reference);
      AddError(four, magnitude, reference);
    }
  }

  // half_inverse: half the winner's, so that the quotients are halved, exactly, as E2m1Bits wants them.
  static void EncodeCodes(const Group& g, F half_inverse, F amax, uint8_t* codes) {
    I nibbles[2];
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      I n = Lanes::SetI(0);
#pragma GCC unroll 8
      for (int i = 7; i >= 0; --i) {
        const F x = Lanes::Load(g.x[8 * half + i]);
        n = AppendCode(n, E2m1Bits(Lanes::Mul(MagnitudeOf(x), half_inverse)), x);
      }
      nibbles[half] = Lanes::SelectLess(Lanes::Set(0.0f), amax, n, Lanes::SetI(0));  // a zero block has no sign bits either
    }
    Lanes::StoreCodes(nibbles[0], nibbles[1], codes);
  }

  void operator()(const Group* batch, int n, uint8_t* codes, uint8_t* scales) const {
    Candidate six[kBatch], four[kBatch];
    F amax[kBatch], half_inverse[kBatch];
    for (int k = 0; k < n; ++k) {
      amax[k] = AmaxOf(batch[k]);
      const F scaled6 = Lanes::Mul(Lanes::Div(amax[k], Lanes::Set(6.0f)), Lanes::Set(gs));
      six[k] = Begin(scaled6);
      four[k] = Begin(Lanes::Mul(scaled6, Lanes::Set(1.5f)));
    }
    for (int k = 0; k < n; ++k) {
      AddErrors(batch[k], six[k], four[k]);
      Lanes::StoreScales(Lanes::SelectLess(four[k].error, six[k].error, four[k].scale.byte, six[k].scale.byte), scales + k * Lanes::kLanes);
      half_inverse[k] = Lanes::Mul(Lanes::SelectLess(four[k].error, six[k].error, four[k].inverse, six[k].inverse), Lanes::Set(0.5f));
    }
    for (int k = 0; k < n; ++k) EncodeCodes(batch[k], half_inverse[k], amax[k], codes + k * Lanes::kLanes * 8);
  }
};

}  // namespace
}  // namespace halfbyte::kernels::quantize
