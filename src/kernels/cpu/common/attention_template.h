// Attention of a few query vectors over a range of keys, in FP32. Include after an instruction set's vec.h and math.h.
//
// A chunk of 128 keys is copied out of its blocks and widened: K [key/16][hd][16], V [key][hd padded to 16] floats. Then, a few query vectors at a time,
// S = q K^T, softmax over the chunk alone, P V, and the fold into the running (m, l, o). Every query vector's result depends on its own q, position and keys only.
#pragma once

#include <utility>

#include "kernels/cpu/common/kernel_table.h"
#include "kernels/cpu/common/kv_layout.h"

namespace halfbyte::kernels::cpu {
namespace {

// (m, l, o) <- (m, l, o) + (m2, l2, o2): both are sums of exp(logit - m) terms. m2 = -inf: nothing to add.
void FoldPartials(int64_t n, int64_t hd_padded, float* m, float* l, float* o, const float* m2, const float* l2, const float* o2) {
  for (int64_t v = 0; v < n; ++v, o += hd_padded, o2 += hd_padded) {
    if (m2[v] == -__builtin_inff()) continue;
    float top = m2[v] > m[v] ? m2[v] : m[v];
    alignas(64) float e[16] = {m[v] - top, m2[v] - top};
    Store(e, Exp(Load(e)));
    const V16 a = Set1(e[0]), b = Set1(e[1]);
    m[v] = top;
    l[v] = l[v] * e[0] + l2[v] * e[1];
    for (int64_t i = 0; i < hd_padded; i += 16) Store(o + i, Fma(a, Load(o + i), Mul(b, Load(o2 + i))));
  }
}

// 16 FP8 bytes (E4M3, any sign) as floats: the byte's bits as an IEEE half are the value times 2^-8, subnormals included.
inline V16 WidenFp8(const std::byte* p) {
  alignas(32) uint16_t h[16];
  for (int j = 0; j < 16; ++j) {
    unsigned b = static_cast<unsigned>(p[j]);
    h[j] = static_cast<uint16_t>((b & 0x80) << 8 | (b & 0x7F) << 7);
  }
  return Mul(WidenHalf(h), Set1(256.0f));
}

// Elements [i, i + 16) of a BF16 or FP8 cache as floats.
inline V16 LoadCached(const std::byte* part, bool fp8, int64_t i) {
  return fp8 ? WidenFp8(part + i) : LoadBf16(reinterpret_cast<const uint16_t*>(part) + i);
}

inline float OneBf16(uint16_t h) { return __builtin_bit_cast(float, static_cast<uint32_t>(h) << 16); }
inline float LoadOneCached(const std::byte* part, bool fp8, int64_t i) {
  if (!fp8) return OneBf16(reinterpret_cast<const uint16_t*>(part)[i]);
  unsigned b = static_cast<unsigned>(part[i]);
  return __builtin_bit_cast(float, (b & 0x80) << 24 | (b & 0x7F) << 20) * 0x1p120f;
}

// Keys [key, key + n), n <= kAttentionChunk, key a multiple of the chunk. Rows of V past n are zero, columns of K past n undefined (their weights become 0).
inline void WidenChunk(const AttentionCall& c, int64_t key, int64_t n, float* k_out, float* v_out) {
  const int64_t hd = c.head_dim, hp = PaddedHeadDim(hd), bt = c.kv.spec.block_tokens;
  const bool f32 = c.kv.spec.dtype == tensor::DType::kF32, fp8 = c.kv.spec.dtype == tensor::DType::kF8E4M3;
  for (int64_t g = 0; g < n; g += 16) {
    const int64_t token = (key + g) % bt;
    const std::byte* part = HeadPart(c.kv, c.blocks[(key + g) / bt], c.kv_head);
    float* k = k_out + g * hd;
    float* v = v_out + g * hp;
    if (f32) {
      auto* data = reinterpret_cast<const float*>(part);
      for (int64_t i = 0; i < hd; ++i) Store(k + i * 16, Load(data + KIndex(hd, true, token, i)));
      for (int64_t t = 0; t < 16; ++t)
        for (int64_t i = 0; i < hd; i += 16)
          Store(v + t * hp + i, g + t < n ? LoadN(data + VIndex(hd, bt, true, token + t, i), hd - i) : Zero());
      continue;
    }
    alignas(64) float t[32];
    for (int64_t i = 0; i < hd; i += 2) {
      int64_t at = KIndex(hd, false, token, i);
      Store(t, LoadCached(part, fp8, at));
      Store(t + 16, LoadCached(part, fp8, at + 16));
      for (int j = 0; j < 16; ++j) { k[i * 16 + j] = t[2 * j]; k[i * 16 + 16 + j] = t[2 * j + 1]; }
    }
    for (int64_t pair = 0; pair < 16; pair += 2)
      for (int64_t i = 0; i < hp; i += 8) {
        bool any = i < hd && g + pair < n;
        int64_t at = VIndex(hd, bt, false, token + pair, i);
        if (any && i + 8 <= hd) Store(t, LoadCached(part, fp8, at));
        else for (int j = 0; j < 16; ++j) t[j] = any && i + j / 2 < hd ? LoadOneCached(part, fp8, at + j) : 0.0f;
        for (int j = 0; j < 8; ++j) {
          v[pair * hp + i + j] = t[2 * j];
          v[(pair + 1) * hp + i + j] = g + pair + 1 < n ? t[2 * j + 1] : 0.0f;
        }
      }
  }
}

// acc[r][p] = sum over s of x[s * MR + r] * w[s * stride + 16 p ...]
template <int MR, int NP>
inline void DotColumns(const float* w, int64_t panel_stride, int64_t stride, int64_t steps, const float* x, V16 (&acc)[MR][NP]) {
  HB_UNROLL
  for (int r = 0; r < MR; ++r)
    HB_UNROLL
    for (int p = 0; p < NP; ++p) acc[r][p] = Zero();
  for (int64_t s = 0; s < steps; ++s, w += stride, x += MR) {
    V16 f[NP];
    HB_UNROLL
    for (int p = 0; p < NP; ++p) f[p] = Load(w + p * panel_stride);
    HB_UNROLL
    for (int r = 0; r < MR; ++r) {
      V16 xr = Set1(x[r]);
      HB_UNROLL
      for (int p = 0; p < NP; ++p) acc[r][p] = Fma(xr, f[p], acc[r][p]);
    }
  }
}

template <int MR, int NP>
inline void DotPanels(const float* w, int64_t panel_stride, int64_t stride, int64_t steps, int64_t panels, const float* x, float* out, int64_t ld) {
  int64_t p = 0;
  for (; p + NP <= panels; p += NP) {
    V16 acc[MR][NP];
    DotColumns<MR, NP>(w + p * panel_stride, panel_stride, stride, steps, x, acc);
    for (int r = 0; r < MR; ++r)
      for (int q = 0; q < NP; ++q) Store(out + r * ld + (p + q) * 16, acc[r][q]);
  }
  for (; p < panels; ++p) {
    V16 acc[MR][1];
    DotColumns<MR, 1>(w + p * panel_stride, panel_stride, stride, steps, x, acc);
    for (int r = 0; r < MR; ++r) Store(out + r * ld + p * 16, acc[r][0]);
  }
}

// Softmax numerators of one query vector over the chunk: s [chunk] becomes exp(s * scale - m); returns their sum. Keys [begin, end) of the chunk are visible.
inline float SoftmaxChunk(float* s, int64_t groups, int64_t begin, int64_t end, float scale, float* m) {
  const V16 lowest = Set1(-__builtin_inff()), factor = Set1(scale);
  V16 top = lowest;
  for (int64_t g = 0; g < groups; ++g) {
    V16 x = SelectRange(Mul(Load(s + g * 16), factor), lowest, begin - g * 16, end - g * 16);
    Store(s + g * 16, x);
    top = Max(top, x);
  }
  *m = MaxLanes(top);
  V16 sum = Zero();
  const V16 shift = Set1(*m);
  for (int64_t g = 0; g < groups; ++g) {
    V16 e = Exp(Sub(Load(s + g * 16), shift));
    Store(s + g * 16, e);
    sum = Add(sum, e);
  }
  return SumLanes(sum);
}

struct AttentionBuffers {
  float* k;        // [chunk/16][hd][16]
  float* v;        // [chunk][hp]
  float* q;        // [hd][MR], packed
  float* s;        // [MR][chunk]
  float* p;        // [chunk][MR]
  float* o;        // [MR][hp]
};
inline constexpr int64_t kMostRows = 16;

int64_t AttentionScratch(int64_t hd) {
  int64_t hp = PaddedHeadDim(hd);
  return 4 * (kAttentionChunk * hp * 2 + hp * kMostRows + 2 * kMostRows * kAttentionChunk + kMostRows * hp);
}

inline AttentionBuffers CarveBuffers(std::byte* scratch, int64_t hd) {
  int64_t hp = PaddedHeadDim(hd);
  float* f = reinterpret_cast<float*>(scratch);
  AttentionBuffers b;
  b.k = f; f += kAttentionChunk * hp;
  b.v = f; f += kAttentionChunk * hp;
  b.q = f; f += hp * kMostRows;
  b.s = f; f += kMostRows * kAttentionChunk;
  b.p = f; f += kMostRows * kAttentionChunk;
  b.o = f;
  return b;
}

// MR query vectors from v0 on, one chunk.
template <class Shape, int MR>
void AttendChunk(const AttentionCall& c, const AttentionBuffers& b, int64_t v0, int64_t key, int64_t n) {
  const int64_t hd = c.head_dim, hp = PaddedHeadDim(hd), groups = (n + 15) / 16;
  for (int r = 0; r < MR; ++r) {
    int64_t v = v0 + r, at = (v / c.group) * c.q_ld + (v % c.group) * hd;
    for (int64_t i = 0; i < hd; ++i) b.q[i * MR + r] = c.q_bf16 ? OneBf16(static_cast<const uint16_t*>(c.q)[at + i]) : static_cast<const float*>(c.q)[at + i];
  }
  DotPanels<MR, Shape::kPanels>(b.k, 16 * hd, 16, hd, groups, b.q, b.s, kAttentionChunk);
  float m[MR], l[MR];
  for (int r = 0; r < MR; ++r) {
    int64_t position = c.first_position + (v0 + r) / c.group, end = position + 1 - key, begin = c.window > 0 ? position + 1 - c.window - key : 0;
    if (end > n) end = n;
    float* s = b.s + r * kAttentionChunk;
    if (begin >= end || end <= 0) {
      m[r] = -__builtin_inff(); l[r] = 0;
      for (int64_t i = 0; i < groups * 16; ++i) s[i] = 0;
    } else {
      l[r] = SoftmaxChunk(s, groups, begin, end, c.scale, &m[r]);
    }
    for (int64_t i = 0; i < groups * 16; ++i) b.p[i * MR + r] = s[i];
  }
  DotPanels<MR, Shape::kPanels>(b.v, 16, hp, groups * 16, hp / 16, b.p, b.o, hp);
  FoldPartials(MR, hp, c.m + v0, c.l + v0, c.o + v0 * hp, m, l, b.o);
}

template <class Shape, int... I>
inline void AttendRows(int64_t rows, const AttentionCall& c, const AttentionBuffers& b, int64_t v0, int64_t key, int64_t n, std::integer_sequence<int, I...>) {
  using Fn = void (*)(const AttentionCall&, const AttentionBuffers&, int64_t, int64_t, int64_t);
  static constexpr Fn kTable[] = {&AttendChunk<Shape, I + 1>...};
  kTable[rows - 1](c, b, v0, key, n);
}

template <class Shape>
void AttentionPartial(const AttentionCall& call) {
  const int64_t hp = PaddedHeadDim(call.head_dim), vectors = call.rows * call.group;
  for (int64_t v = 0; v < vectors; ++v) { call.m[v] = -__builtin_inff(); call.l[v] = 0; }
  for (int64_t i = 0; i < vectors * hp; ++i) call.o[i] = 0;
  AttentionBuffers b = CarveBuffers(call.scratch, call.head_dim);
  AttentionCall c = call;
  c.scale *= c.kv.k_scale;  // 1 unless the cache is FP8; v_scale is applied by the caller, at the end
  for (int64_t key = c.key_begin; key < c.key_end; key += kAttentionChunk) {
    int64_t n = c.key_end - key < kAttentionChunk ? c.key_end - key : kAttentionChunk;
    // A chunk that the window hides from every row adds nothing.
    if (c.window > 0 && key + n <= c.first_position + 1 - c.window) continue;
    WidenChunk(c, key, n, b.k, b.v);
    for (int64_t v = 0; v < vectors; v += Shape::kRows) {
      int64_t rows = vectors - v < Shape::kRows ? vectors - v : Shape::kRows;
      AttendRows<Shape>(rows, c, b, v, key, n, std::make_integer_sequence<int, Shape::kRows>());
    }
  }
}

}  // namespace
}  // namespace halfbyte::kernels::cpu
