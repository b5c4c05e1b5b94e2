// Functions over V16. Include after an instruction set's vec.h (internal linkage, see there).
#pragma once

#if defined(__clang__)
#define HB_UNROLL _Pragma("unroll")
#else
#define HB_UNROLL _Pragma("GCC unroll 16")
#endif

namespace halfbyte::kernels::cpu {
namespace {

// e^x to about 1 ulp; 0 below -87.3 (where floats become subnormal), the largest finite power for x > 88.3; NaN stays NaN.
// x = n ln 2 + r, |r| <= ln 2 / 2; the polynomial is Cephes' expf.
inline V16 Exp(V16 x) {
  const V16 lowest = Set1(-87.3f);
  V16 c = Min(Set1(88.3f), Max(lowest, x));
  V16 n = Round(Mul(c, Set1(1.44269504088896341f)));
  V16 r = Fnma(n, Set1(0.693359375f), c);
  r = Fnma(n, Set1(-2.12194440e-4f), r);
  V16 p = Set1(1.9875691500e-4f);
  p = Fma(p, r, Set1(1.3981999507e-3f));
  p = Fma(p, r, Set1(8.3334519073e-3f));
  p = Fma(p, r, Set1(4.1665795894e-2f));
  p = Fma(p, r, Set1(1.6666665459e-1f));
  p = Fma(p, r, Set1(5.0000001201e-1f));
  V16 e = Add(Fma(p, Mul(r, r), r), Set1(1.0f));
  return ZeroWhereLess(ScaleByPowerOf2(e, n), x, lowest);
}

inline V16 Silu(V16 g) { return Div(g, Add(Set1(1.0f), Exp(Sub(Zero(), g)))); }

}  // namespace
}  // namespace halfbyte::kernels::cpu
