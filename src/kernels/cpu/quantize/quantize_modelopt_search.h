// ModelOpt's two searches on blocks in lanes: QuantizeBlockModeloptFourOverSix and QuantizeBlockModeloptSweep
// (numerics/block_quantizer.h), vertically.
#pragma once

#include "kernels/cpu/quantize/block_kernels.h"
#include "kernels/cpu/quantize/quantize_modelopt.h"

namespace halfbyte::kernels::quantize {
namespace {

// Squared error of |x| under a plain divisor, summed in order. code * divisor is rounded before the subtraction, as the contract has it.
// A divisor of zero (a scale that vanished) makes every quotient infinite or NaN, the code 7 and the product 0, as there.
inline F ModeloptError(const Group& g, F divisor, F reciprocal) {
  F error = Lanes::Set(0.0f);
#pragma GCC unroll 16
  for (int i = 0; i < kElements; ++i) {
    const F magnitude = MagnitudeOf(Lanes::Load(g.x[i]));
    const F product = Lanes::Mul(RoundE2m1(Quotient(magnitude, divisor, reciprocal)), divisor);
    const F difference = Lanes::Sub(product, magnitude);
    const F square = Lanes::Mul(difference, difference);
    error = Lanes::Add(error, square);
  }
  return error;
}

// Division by 6 in PyTorch's two ways.
inline F Sixth(F v, bool multiply) {
  return multiply ? Lanes::Mul(v, Lanes::FromBits(Lanes::SetI(0x3E2AAAAB))) : Lanes::Div(v, Lanes::Set(6.0f));
}

struct ModeloptFourOverSix {
  ModeloptSearch p;

  F Error(const Group& g, F candidate) const {
    const F scale = EncodeE4m3(Lanes::Mul(Sixth(candidate, p.multiply_by_sixth), Lanes::Set(p.u))).value;
    const F divisor = Lanes::Mul(scale, Lanes::Set(p.inverse_u));
    return ModeloptError(g, divisor, Lanes::Div(Lanes::Set(1.0f), divisor));
  }

  void operator()(const Group* batch, int n, uint8_t* codes, uint8_t* scales) const {
    Scale scale[kBatch];
    for (int k = 0; k < n; ++k) {
      const F amax = AmaxOf(batch[k]), larger = Lanes::Mul(amax, Lanes::Set(1.5f));
      const F best = Lanes::SelectLess(Error(batch[k], larger), Error(batch[k], amax), larger, amax);
      F sixth = Sixth(best, p.multiply_by_sixth);
      sixth = Lanes::SelectLess(Lanes::Set(0.0f), sixth, sixth, Lanes::Set(1.0f));
      scale[k] = ClampedScale(Lanes::Div(Lanes::Mul(sixth, Lanes::Set(256.0f)), Lanes::Set(p.tensor_sixth)));
    }
    for (int k = 0; k < n; ++k) EncodeModelopt(batch[k], scale[k], p.ws2, codes + k * Lanes::kLanes * 8, scales + k * Lanes::kLanes);
  }
};

// Candidates are taken upwards from the one nearest below the group's smallest amax / 6, then downwards; the answer (the least error, of
// equal ones the smallest scale) does not depend on the order. Two bounds end the walks early without changing it:
//   up: where a divisor reaches 4 * amax every code is 0 and the error stays the same, so none after it is better;
//   down: the largest element alone is clipped by amax - 6 * divisor, growing as the divisor shrinks, and sums only grow.
struct ModeloptSweep {
  const SweepTable& table;

  struct Best {
    F error;
    I code;
  };

  static F ErrorUnder(const Group& g, float divisor, float reciprocal) { return ModeloptError(g, Lanes::Set(divisor), Lanes::Set(reciprocal)); }

  Best Search(const Group& g) const {
    const F amax = AmaxOf(g);
    alignas(64) float values[Lanes::kLanes];
    Lanes::Store(values, amax);
    float smallest = __builtin_inff(), largest = 0;  // of blocks that are not zero
    for (float v : values) {
      smallest = v > 0 && v < smallest ? v : smallest;
      largest = v > largest ? v : largest;
    }
    int start = 1;
    while (start < SweepTable::kLast && 6 * table.divisor[start + 1] <= smallest) ++start;
    // A zero block has no error under any scale: it keeps the first, and must not make the others walk down to it.
    const F zero = Lanes::Set(0.0f);
    Best best{Lanes::SelectLess(zero, amax, Lanes::Set(__builtin_inff()), Lanes::Set(-1.0f)), Lanes::SetI(1)};
    for (int c = start; c <= SweepTable::kLast; ++c) {
      Consider<false>(best, ErrorUnder(g, table.divisor[c], table.reciprocal[c]), c);
      if (table.divisor[c] >= 4 * largest) break;
    }
    for (int c = start - 1; c >= 1; --c) {
      // Blocks that this candidate, and so every smaller one, clips too much have lost it; stop when all have.
      const F clipped = Lanes::Sub(amax, Lanes::Set(6.0f * table.divisor[c]));
      const F least = Lanes::SelectLess(zero, clipped, Lanes::Mul(clipped, clipped), zero);
      if (!Lanes::AnyLessOrEqual(least, best.error)) break;
      Consider<true>(best, ErrorUnder(g, table.divisor[c], table.reciprocal[c]), c);
    }
    return best;
  }

  // kTieWins: an equal error takes the candidate too (on the way down, where it is the smaller scale).
  template <bool kTieWins>
  static void Consider(Best& best, F error, int code) {
    const I c = Lanes::SetI(static_cast<uint32_t>(code));
    best.code = kTieWins ? Lanes::SelectLess(best.error, error, best.code, c) : Lanes::SelectLess(error, best.error, c, best.code);
    best.error = Lanes::Min(error, best.error);
  }

  void operator()(const Group* batch, int n, uint8_t* codes, uint8_t* scales) const {
    for (int k = 0; k < n; ++k) {
      const I code = Search(batch[k]).code;
      EncodeModelopt(batch[k], {code, DecodeE4m3(code)}, table.ws2, codes + k * Lanes::kLanes * 8, scales + k * Lanes::kLanes);
    }
  }
};

}  // namespace
}  // namespace halfbyte::kernels::quantize
