// SwiGLU, scaling and the weighted sum over slots, written once over V16. Include after an instruction set's vec.h. Internal linkage.
#include "kernels/cpu/moe/kernel.h"

namespace halfbyte::kernels::cpu::moe {
namespace {

// exp(x) for x <= 88.3; relative error below 1e-7 (degree 6 on [-ln2/2, ln2/2], tested over the whole range). Below -87 it stays at e^-87: beside the 1
// that is added to it in Silu that is nothing, and powers of two below 2^-126 would need a second step with AVX2.
inline V16 Exp(V16 x) {
  x = Max(x, Set1(-87.0f));
  const V16 n = Round(Mul(x, Set1(1.44269504088896341f)));
  V16 r = Fnma(n, Set1(0.693359375f), x);
  r = Fnma(n, Set1(-2.12194440e-4f), r);
  V16 p = Set1(1.9875691500e-4f);
  p = Fma(p, r, Set1(1.3981999507e-3f));
  p = Fma(p, r, Set1(8.3334519073e-3f));
  p = Fma(p, r, Set1(4.1665795894e-2f));
  p = Fma(p, r, Set1(1.6666665459e-1f));
  p = Fma(p, r, Set1(5.0000001201e-1f));
  return ScaleByPowerOf2(Fma(p, Mul(r, r), Add(r, Set1(1.0f))), n);
}

// v / (1 + exp(-v)), the definition; the argument is capped so that exp stays finite (the quotient is below 1e-35 there).
inline V16 Silu(V16 v) { return Div(v, Add(Set1(1.0f), Exp(Min(Sub(Zero(), v), Set1(88.3f))))); }

void SwiGlu(const SwiGluCall& c) {
  const V16 gate_scale = Set1(c.gate_scale), up_scale = Set1(c.up_scale);
  for (int64_t r = 0; r < c.m; ++r) {
    const V16 row = Set1(c.row_scale[r]);
    const V16 gate = Mul(Mul(Load(c.sums + r * kPair), gate_scale), row);
    const V16 up = Mul(Mul(Load(c.sums + r * kPair + kTile), up_scale), row);
    Store(c.h + r * c.ld, Mul(Silu(gate), up));
  }
}

void Scale(const ScaleCall& c) {
  const V16 scale = Set1(c.scale);
  for (int64_t r = 0; r < c.m; ++r) {
    const V16 row = Set1(c.row_scale[r]);
    for (int64_t i = 0; i < c.columns; i += kTile) {
      const V16 v = Mul(Mul(Load(c.sums + r * kPair + i), scale), row);
      if (c.columns - i >= kTile) Store(c.y + r * c.ld + i, v);
      else StoreN(c.y + r * c.ld + i, v, c.columns - i);
    }
  }
}

void Combine(const CombineCall& c) {
  int64_t i = 0;
  for (; i + 16 <= c.d; i += 16) {
    V16 sum = Zero();
    for (int64_t s = 0; s < c.k; ++s) sum = Fma(Set1(c.weights[s]), Load(c.y[s] + i), sum);
    Store(c.out + i, Add(Load(c.out + i), sum));
  }
  if (i == c.d) return;
  V16 sum = Zero();
  for (int64_t s = 0; s < c.k; ++s) sum = Fma(Set1(c.weights[s]), LoadN(c.y[s] + i, c.d - i), sum);
  StoreN(c.out + i, Add(LoadN(c.out + i, c.d - i), sum), c.d - i);
}

}  // namespace
}  // namespace halfbyte::kernels::cpu::moe
