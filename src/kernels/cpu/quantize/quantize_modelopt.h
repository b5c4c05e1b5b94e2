// ModelOpt's dynamic path on blocks in lanes: QuantizeBlockModelopt (numerics/block_quantizer.h), vertically.
#pragma once

#include "kernels/cpu/quantize/block_lanes.h"

namespace halfbyte::kernels::quantize {
namespace {

struct ModeloptGroup {
  float ws2;

  void operator()(Group& g, uint8_t* codes, uint8_t* scales) const {
    const I magnitude_bits = Lanes::SetI(0x7FFFFFFF);
    F amax = Lanes::And(Lanes::Load(g.x[0]), magnitude_bits);
#pragma GCC unroll 16
    for (int i = 1; i < kElements; ++i) amax = Lanes::Max(amax, Lanes::And(Lanes::Load(g.x[i]), magnitude_bits));

    F s = Lanes::Div(amax, Lanes::Set(6.0f * ws2));
    s = Lanes::SelectLess(Lanes::Set(0.0f), s, s, Lanes::Set(1.0f));
    const Scale scale = EncodeE4m3(Lanes::Max(s, Lanes::Set(0x1p-9f)));  // saturates at 448 by itself
    Lanes::StoreScales(scale.byte, scales);

    // Dividing by twice the divisor halves the quotient exactly (MaxModeloptWs2 keeps it off the subnormals' end).
    const F divisor = Lanes::Mul(Lanes::Mul(scale.value, Lanes::Set(ws2)), Lanes::Set(2.0f));
    I nibbles[2];
    for (int half = 0; half < 2; ++half) {
      I n = Lanes::SetI(0);
#pragma GCC unroll 8
      for (int i = 7; i >= 0; --i) {
        const F x = Lanes::Add(Lanes::Load(g.x[8 * half + i]), Lanes::Set(0.0f));  // -0.0 becomes +0.0: its code is 0
        n = AppendCode(n, E2m1Bits(Lanes::Div(Lanes::And(x, magnitude_bits), divisor)), x);
      }
      nibbles[half] = n;
    }
    Lanes::StoreCodes(nibbles[0], nibbles[1], codes);
  }
};

}  // namespace
}  // namespace halfbyte::kernels::quantize
