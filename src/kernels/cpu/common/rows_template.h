// Row-wise kernels over V16. Include after an instruction set's vec.h and math.h. A row's sums run in a fixed order: four vectors
// of partial sums, then their tree.
#pragma once

#include "kernels/cpu/common/kernel_table.h"

namespace halfbyte::kernels::cpu {
namespace {

inline void StoreRow(void* out, bool bf16, int64_t i, V16 y, int64_t n) {
  if (bf16) StoreBf16N(static_cast<uint16_t*>(out) + i, y, n);
  else StoreN(static_cast<float*>(out) + i, y, n);
}

inline V16 LoadRow(const void* x, bool bf16, int64_t i, int64_t n) {
  if (bf16) return n >= 16 ? LoadBf16(static_cast<const uint16_t*>(x) + i) : LoadBf16N(static_cast<const uint16_t*>(x) + i, n);
  return n >= 16 ? Load(static_cast<const float*>(x) + i) : LoadN(static_cast<const float*>(x) + i, n);
}

inline float SumOfSquares(const float* x, int64_t d) {
  V16 s[4] = {Zero(), Zero(), Zero(), Zero()};
  int64_t i = 0;
  for (; i + 64 <= d; i += 64) {
    HB_UNROLL
    for (int j = 0; j < 4; ++j) {
      V16 a = Load(x + i + 16 * j);
      s[j] = Fma(a, a, s[j]);
    }
  }
  for (; i < d; i += 16) {
    V16 a = LoadN(x + i, d - i);
    s[0] = Fma(a, a, s[0]);
  }
  return SumLanes(Add(Add(s[0], s[1]), Add(s[2], s[3])));
}

void RmsNormRow(const float* x, const float* w, int64_t d, float eps, bool plus_one, void* out, bool out_bf16) {
  const V16 r = Set1(1.0f / __builtin_sqrtf(SumOfSquares(x, d) / static_cast<float>(d) + eps));
  for (int64_t i = 0; i < d; i += 16) {
    V16 y = Mul(LoadN(x + i, d - i), r);
    if (w) {
      V16 g = LoadN(w + i, d - i);
      y = Mul(plus_one ? Add(g, Set1(1.0f)) : g, y);
    }
    StoreRow(out, out_bf16, i, y, d - i);
  }
}

void SiluMulRow(const float* gate, const float* up, int64_t d, void* out, bool out_bf16) {
  for (int64_t i = 0; i < d; i += 16) StoreRow(out, out_bf16, i, Mul(Silu(LoadN(gate + i, d - i)), LoadN(up + i, d - i)), d - i);
}

void RopeRow(float* x, const float* cos, const float* sin, int64_t half) {
  for (int64_t i = 0; i < half; i += 16) {
    int64_t n = half - i;
    V16 a = LoadN(x + i, n), b = LoadN(x + half + i, n), c = LoadN(cos + i, n), s = LoadN(sin + i, n);
    StoreN(x + i, Sub(Mul(a, c), Mul(b, s)), n);
    StoreN(x + half + i, Add(Mul(b, c), Mul(a, s)), n);
  }
}

void ClampRow(float* x, int64_t d, float limit) {
  for (int64_t i = 0; i < d; i += 16) StoreN(x + i, Min(Set1(limit), Max(Set1(-limit), LoadN(x + i, d - i))), d - i);
}

void ToBf16Row(const float* x, int64_t d, uint16_t* out) {
  for (int64_t i = 0; i < d; i += 16) StoreBf16N(out + i, LoadN(x + i, d - i), d - i);
}

void FromBf16Row(const uint16_t* x, int64_t d, float* out) {
  for (int64_t i = 0; i < d; i += 16) StoreN(out + i, LoadRow(x, true, i, d - i), d - i);
}

void RoundBf16Row(float* x, int64_t d) {
  for (int64_t i = 0; i < d; i += 16) StoreN(x + i, RoundToBf16(LoadN(x + i, d - i)), d - i);
}

void AddScaledRow(const float* y, float scale, int64_t d, float* out) {
  for (int64_t i = 0; i < d; i += 16) StoreN(out + i, Fma(Set1(scale), LoadN(y + i, d - i), LoadN(out + i, d - i)), d - i);
}

// 16 values of each row at a time, then written across: out[k * rows + r].
void PackF32(const void* x, bool x_bf16, int64_t rows, int64_t k, int64_t ld, int64_t depth, float* out) {
  for (int64_t i = 0; i < depth; i += 16)
    for (int64_t r = 0; r < rows; ++r) {
      V16 v = i < k ? LoadRow(x, x_bf16, r * ld + i, k - i) : Zero();
      if (rows == 1) {
        Store(out + i, v);
        continue;
      }
      alignas(64) float t[16];
      Store(t, v);
      for (int j = 0; j < 16; ++j) out[(i + j) * rows + r] = t[j];
    }
}

void PackBf16(const void* x, bool x_bf16, int64_t rows, int64_t k, int64_t ld, int64_t depth, uint32_t* out) {
  for (int64_t i = 0; i < depth; i += 16)
    for (int64_t r = 0; r < rows; ++r) {
      alignas(64) uint32_t t[8];
      StoreBf16(reinterpret_cast<uint16_t*>(t), i < k ? LoadRow(x, x_bf16, r * ld + i, k - i) : Zero());
      for (int j = 0; j < 8; ++j) out[(i / 2 + j) * rows + r] = t[j];
    }
}

}  // namespace
}  // namespace halfbyte::kernels::cpu
