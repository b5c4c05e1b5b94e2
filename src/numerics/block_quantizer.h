// How one block of 16 values becomes NVFP4: every contract that the project knows, one IEEE operation at a time.
//
// Bytes are promised, so the order of operations is the contract: a division is not a multiplication by the reciprocal, and a
// product that is added must be rounded first. This code must be compiled with -ffp-contract=off (cmake/HalfbyteOptions.cmake);
// tests/unit/numerics proves that contraction changes bytes. Where the text below says rn(...), it is one FP32 operation.
// x is finite throughout: matrices with NaN or infinity are refused before (see Amax in weight_quantizer.h).
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "numerics/nvfp4_block.h"

namespace halfbyte::numerics {

inline constexpr float kFloatMax = std::numeric_limits<float>::max();
using BlockInput = std::span<const float, kBlock>;

enum class ErrorNorm : uint8_t { kMse, kMae };
enum class ErrorForm : uint8_t {
  kScaled,  // code * scale against x * gs: both in the scaled domain (FlashInfer's "fast" error form; the load-time contract)
  kValue,   // rn(rn(code * scale) * gd) against x
};

// --- FlashInfer's arithmetic: multiply by an inverse (reference-behaviour 1.5 and 1.7, exact forms) --------------------------

// rn(1 / rn(scale * gd)), kept finite: a scale that rounded to zero gives FLT_MAX, so the block's non-zero elements get codes +-6
// under a zero scale. They decode to 0; the bytes are part of the contract.
constexpr float InverseScale(uint8_t scale, float gd) { return std::min(1.0f / (E4m3ToFloat(scale) * gd), kFloatMax); }

// The plain exact form. gs is the encode scale: 1/ws2 for a tensor, the row's `enc` per token.
// A zero block has scale 0 and codes 0, except that -0.0 keeps its sign bit (x * 0 is -0.0).
constexpr Nvfp4Block QuantizeBlockPlain(BlockInput x, float gs) {
  const float amax = BlockAmax(x);
  const uint8_t scale = FloatToE4m3(amax * (gs * kReciprocal6));
  const float inverse = amax == 0 ? 0.0f : InverseScale(scale, 1.0f / gs);
  std::array<uint8_t, kBlock> codes{};
  for (int i = 0; i < kBlock; ++i) codes[i] = FloatToE2m1(x[i] * inverse);
  return PackBlock(codes, scale);
}

struct Candidate {
  std::array<uint8_t, kBlock> codes{};
  uint8_t scale = 0;
  float error = 0;
};

// One of the two candidates of the search: the block under E4M3(scaled_amax), and its error, summed in the order of the elements.
constexpr Candidate EvaluateCandidate(BlockInput x, float scaled_amax, float gs, float gd, ErrorNorm norm, ErrorForm form) {
  Candidate c;
  c.scale = FloatToE4m3(scaled_amax);
  const float scale = E4m3ToFloat(c.scale);
  const float inverse = InverseScale(c.scale, gd);
  for (int i = 0; i < kBlock; ++i) {
    c.codes[i] = FloatToE2m1(x[i] * inverse);
    const float decoded = E2m1ToFloat(c.codes[i]) * scale;  // exact
    float difference = 0;
    if (form == ErrorForm::kScaled) {
      const float reference = x[i] * gs;
      difference = decoded - reference;
    } else {
      const float value = decoded * gd;
      difference = value - x[i];
    }
    const float term = norm == ErrorNorm::kMse ? difference * difference : Magnitude(difference);
    c.error = c.error + term;
  }
  return c;
}

struct FourOverSix {
  Candidate four, six;  // the block's largest value sent to 4, to 6
  constexpr bool PicksFour() const { return four.error < six.error; }  // a tie goes to 6
};

// gs = rn(1/ws2). gd is rn(1/gs) and not ws2: the double reciprocal differs in the last bit for one scale in four.
constexpr FourOverSix EvaluateFourOverSix(BlockInput x, float gs, ErrorNorm norm, ErrorForm form) {
  const float sixth = BlockAmax(x) / 6.0f;
  const float scaled6 = sixth * gs;
  const float scaled4 = scaled6 * 1.5f;
  const float gd = 1.0f / gs;
  return {EvaluateCandidate(x, scaled4, gs, gd, norm, form), EvaluateCandidate(x, scaled6, gs, gd, norm, form)};
}

// The load-time form. A zero block is all zero bytes, -0.0 included.
constexpr Nvfp4Block QuantizeBlockFourOverSix(BlockInput x, float gs, ErrorNorm norm, ErrorForm form) {
  if (BlockAmax(x) == 0) return {};
  const FourOverSix both = EvaluateFourOverSix(x, gs, norm, form);
  const Candidate& best = both.PicksFour() ? both.four : both.six;
  return PackBlock(best.codes, best.scale);
}

// --- ModelOpt's arithmetic: divide by the decoded scale (numerics-and-formats 2.1, 2.2, 2.9) ---------------------------------

// Which of PyTorch's two ways to divide a tensor by a number: on CUDA it multiplies by the rounded reciprocal.
enum class Flavour : uint8_t { kCuda, kCpu };

constexpr float DivideBy6(float v, Flavour flavour) { return flavour == Flavour::kCuda ? v * kReciprocal6 : v / 6.0f; }

// E4M3 with ModelOpt's clamp (there since 0.45.0): a block too small for a scale gets 2^-9, not zero; none becomes NaN.
constexpr uint8_t ClampedScale(float s) { return FloatToE4m3(std::min(std::max(s, 0x1p-9f), kE4m3Max)); }

constexpr Nvfp4Block EncodeBlockModelopt(BlockInput x, uint8_t scale, float ws2) {
  const float divisor = E4m3ToFloat(scale) * ws2;
  std::array<uint8_t, kBlock> codes{};
  for (int i = 0; i < kBlock; ++i) codes[i] = FloatToE2m1Modelopt(x[i] / divisor);
  return PackBlock(codes, scale);
}

// The dynamic path, ModelOpt's default: s = rn(amax / rn(6 * ws2)), zero -> 1.0 (so a zero block has scale byte 0x38).
constexpr Nvfp4Block QuantizeBlockModelopt(BlockInput x, float ws2) {
  const float six_ws2 = 6.0f * ws2;
  const float s = BlockAmax(x) / six_ws2;
  return EncodeBlockModelopt(x, ClampedScale(s == 0 ? 1.0f : s), ws2);
}

// The static path's scale for a block whose (searched) amax is `amax`, in a tensor of amax `tensor_amax`:
// rn(rn((amax/6) * M) / (tensor_amax/6)). Zero -> 1.0 before the rescaling, so a zero block usually gets 0x7E.
constexpr uint8_t StaticScale(float amax, float tensor_amax, float m, Flavour flavour) {
  const float p = DivideBy6(amax, flavour);
  const float scaled = (p == 0 ? 1.0f : p) * m;
  return ClampedScale(scaled / DivideBy6(tensor_amax, flavour));
}

constexpr Nvfp4Block QuantizeBlockModeloptStatic(BlockInput x, float tensor_amax, float ws2, float m, Flavour flavour) {
  return EncodeBlockModelopt(x, StaticScale(BlockAmax(x), tensor_amax, m, flavour), ws2);
}

// Squared error of |x| under the plain divisor, summed in the order of the elements. Sums only grow, so it stops, and returns a
// value not below `enough`, once it cannot win any more. Squares of FP32 values: for tensors with an amax beyond 1e18 or below 1e-17
// they overflow or vanish and the search finds nothing, in ModelOpt as here. (The load-time form compares scaled values; it is safe.)
constexpr float ModeloptError(BlockInput x, float divisor, float enough) {
  float error = 0;
  for (float v : x) {
    const float q = E2m1ToFloat(E2m1Magnitude(Magnitude(v) / divisor)) * divisor;
    const float difference = q - Magnitude(v);
    const float term = difference * difference;
    error = error + term;
    if (error >= enough) return error;
  }
  return error;
}

// u of ModelOpt's fake quantizer in a four-over-six search (below).
constexpr float ModeloptSearchScale(float tensor_amax, Flavour flavour) {
  return kE4m3Max / DivideBy6(tensor_amax * (kE4m3Max / 256.0f), flavour);
}

// ModelOpt's four-over-six (M = 256, MSE): the candidates amax and 1.5 * amax are judged under calibration's fake quantizer, whose
// scale is rn(E4M3(rn(rn(c * amax / 6) * u)) * rn(1/u)), u = 448 / ((tensor_amax * 448/256) / 6), and the winner is exported by the
// static path. ModelOpt's own sum runs in PyTorch's order; in a near-tie it may choose otherwise (ours is the order 0..15).
constexpr Nvfp4Block QuantizeBlockModeloptFourOverSix(BlockInput x, float tensor_amax, float ws2, Flavour flavour) {
  const float m = 256.0f;
  const float amax = BlockAmax(x);
  const float u = ModeloptSearchScale(tensor_amax, flavour);
  const float inverse_u = 1.0f / u;
  float errors[2] = {};
  for (int c = 0; c < 2; ++c) {
    const float candidate = c == 0 ? amax : amax * 1.5f;
    const uint8_t scale = FloatToE4m3(DivideBy6(candidate, flavour) * u);
    errors[c] = ModeloptError(x, E4m3ToFloat(scale) * inverse_u, std::numeric_limits<float>::infinity());
  }
  const float best = errors[1] < errors[0] ? amax * 1.5f : amax;  // a tie keeps 6
  return EncodeBlockModelopt(x, StaticScale(best, tensor_amax, m, flavour), ws2);
}

constexpr float SweepDivisor(uint8_t code, float tensor_amax) { return E4m3ToFloat(code) / kE4m3Max * tensor_amax / 6.0f; }

// The sweep: all 126 positive finite E4M3 scales, divisor rn(rn((E4M3/448) * tensor_amax) / 6), least squared error, the first (the
// smallest scale) wins a tie. Its winner passes the static path's rounding unchanged, so the byte is stored directly.
// A zero block has no error under any scale and gets the first, 0x01.
constexpr Nvfp4Block QuantizeBlockModeloptSweep(BlockInput x, float tensor_amax, float ws2) {
  float best_error = std::numeric_limits<float>::infinity();
  uint8_t best = 1;
  const float amax = BlockAmax(x);
  for (int code = 1; code <= 0x7E; ++code) {
    const float divisor = SweepDivisor(static_cast<uint8_t>(code), tensor_amax);
    // The largest element alone is clipped by this much: no need to look at the others.
    const float clipped = amax - kE2m1Max * divisor;
    if (clipped > 0 && clipped * clipped >= best_error) continue;
    const float error = ModeloptError(x, divisor, best_error);
    if (error < best_error) {
      best_error = error;
      best = static_cast<uint8_t>(code);
    }
  }
  return EncodeBlockModelopt(x, best, ws2);
}

}  // namespace halfbyte::numerics
