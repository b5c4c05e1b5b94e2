// Attention of a few query vectors over a range of keys. Include after an instruction set's vec.h, math.h, linear_template.h and
// weights.h.
//
// In the KV layout (kv_layout.h) both q K^T and P V are the dense product of linear_template.h: 16 tokens are a panel of K, 16
// columns a panel of V. A chunk of 128 keys is 8 groups of 16 tokens; each gives the address of its K and its V, in the cache
// itself where W can read the cache's type, else in a converted copy. Then, a few query vectors at a time: S = q K^T, softmax
// over the chunk alone, P V, and the fold into the running (m, l, o). Every query vector's result depends on its own q, position
// and keys only.
#pragma once

#include "kernels/cpu/common/kernel_table.h"
#include "kernels/cpu/common/kv_layout.h"

namespace halfbyte::kernels::cpu {
namespace {

inline constexpr int64_t kGroupTokens = 16;
inline constexpr int64_t kChunkGroups = kAttentionChunk / kGroupTokens;

// (m, l, o) <- (m, l, o) + (m2, l2, o2): both are sums of exp(logit - m) terms. m2 = -inf: nothing to add.
void FoldPartials(int64_t n, int64_t hd_padded, float* m, float* l, float* o, const float* m2, const float* l2, const float* o2) {
  for (int64_t first = 0; first < n; first += 16) {
    const int64_t count = n - first < 16 ? n - first : 16;
    const V16 old_m = LoadN(m + first, count), new_m = LoadN(m2 + first, count), top = Max(old_m, new_m);
    alignas(64) float a[16], b[16];
    // -inf - -inf where neither has a term yet: those are skipped below.
    Store(a, Exp(Sub(old_m, top)));
    Store(b, Exp(Sub(new_m, top)));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t v = first + i;
      if (m2[v] == -__builtin_inff()) continue;
      l[v] = l[v] * a[i] + l2[v] * b[i];
      m[v] = m2[v] > m[v] ? m2[v] : m[v];
      const V16 down = Set1(a[i]), up = Set1(b[i]);
      float* to = o + v * hd_padded;
      const float* from = o2 + v * hd_padded;
      for (int64_t d = 0; d < hd_padded; d += 16) Store(to + d, Fma(down, Load(to + d), Mul(up, Load(from + d))));
    }
  }
}

// Numerators of one query vector over the chunk: s becomes exp(s * scale - m), 0 outside of the visible keys [begin, end);
// returns their sum.
inline float SoftmaxChunk(float* s, int64_t groups, int64_t begin, int64_t end, float scale, float* m) {
  const V16 lowest = Set1(-__builtin_inff()), factor = Set1(scale);
  V16 top = lowest;
  for (int64_t g = 0; g < groups; ++g) {
    V16 x = Mul(Load(s + g * 16), factor);
    if (begin > g * 16 || end < g * 16 + 16) x = SelectRange(x, lowest, begin - g * 16, end - g * 16);
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

// What a chunk's products read. Groups past the last key are left out.
struct Chunk {
  int64_t key = 0, keys = 0;
  const std::byte* k[kChunkGroups];
  const std::byte* v[kChunkGroups];
  int64_t v_stride = 0;  // bytes from one step of V (a pair of tokens, or a token of F32) to the next
  // What to fetch meanwhile: this chunk's V beside its K and the next one's K beside this one's V; where groups are copied, the
  // next chunk's K and V. (A chunk is 64 KiB of BF16; without this, decoding at 16 K keys read 6.0 of the 17.5 GB/s that a core
  // could: nothing overlapped.)
  const std::byte* ahead_k[kChunkGroups];
  const std::byte* ahead_v[kChunkGroups];
  int64_t group_bytes = 0;  // of K, and of V, in the cache
};

// `bytes` from `from` on, in `steps` steps of NP lines.
template <int NP>
inline LinesAhead<NP> AheadOf(const std::byte* from, int64_t bytes, int64_t steps) {
  LinesAhead<NP> ahead;
  ahead.step = bytes / steps;
  HB_UNROLL
  for (int p = 0; p < NP; ++p) ahead.at[p] = from + p * ahead.step / NP;
  return ahead;
}

// What a call needs besides its results.
template <class W>
struct AttentionBuffers {
  using Unit = typename W::Unit;
  Unit* q;          // [vectors][q_ld], row by row
  float* s;         // [kTileRows][chunk]
  Unit* p;          // [kTileRows][chunk], in W's units; s itself where those are floats
  float* o;         // [kTileRows][hp]
  std::byte* copy;  // converted groups, see CopyGroup
};

template <class W>
inline int64_t AttentionScratchBytes(int64_t hd) {
  const int64_t hp = PaddedHeadDim(hd);
  return 4 * (kAttentionVectors * hp + 2 * W::kTileRows * kAttentionChunk + W::kTileRows * hp + 2 * kAttentionChunk * hp) + 64;
}

template <class W>
inline AttentionBuffers<W> CarveBuffers(std::byte* scratch, int64_t hd) {
  const int64_t hp = PaddedHeadDim(hd);
  auto* f = reinterpret_cast<float*>(scratch);
  AttentionBuffers<W> b;
  b.q = reinterpret_cast<typename W::Unit*>(f);
  f += kAttentionVectors * hp;
  b.s = f;
  f += W::kTileRows * kAttentionChunk;
  b.p = sizeof(typename W::Unit) / W::kUnitDepth == 4 ? reinterpret_cast<typename W::Unit*>(b.s)
                                                      : reinterpret_cast<typename W::Unit*>(f);
  f += W::kTileRows * kAttentionChunk;
  b.o = f;
  f += W::kTileRows * hp;
  b.copy = reinterpret_cast<std::byte*>(f);
  return b;
}

inline constexpr int64_t UnitsOf(int64_t values, int depth) { return (values + depth - 1) / depth; }

// S = q K^T for MR vectors.
template <class W, int MR, int NP>
inline void ScoreGroups(const AttentionCall& c, const Chunk& chunk, const AttentionBuffers<W>& b, int64_t v0, int64_t g) {
  const int64_t ld = UnitsOf(c.head_dim, W::kUnitDepth);
  const std::byte* w[NP];
  HB_UNROLL
  for (int p = 0; p < NP; ++p) w[p] = chunk.k[g + p];
  const int64_t steps = c.head_dim / (W::kUnits * W::kUnitDepth);
  const LinesAhead<NP> ahead = AheadOf<NP>(chunk.ahead_k[g], NP * chunk.group_bytes, steps);
  V16 acc[MR][NP];
  Clear(acc);
  DotSteps<W, MR, NP>(w, kRawBytes, steps, b.q + v0 * ld, RowByRow{ld}, ahead, acc);
  HB_UNROLL
  for (int r = 0; r < MR; ++r) {
    HB_UNROLL
    for (int p = 0; p < NP; ++p) Store(b.s + r * kAttentionChunk + (g + p) * 16, acc[r][p]);
  }
}

// O = P V for MR vectors and NP panels of columns. Steps stop at the last key: what lies behind it was never written.
template <class W, int MR, int NP>
inline void WeighColumns(const Chunk& chunk, const AttentionBuffers<W>& b, int64_t hp, int64_t panel) {
  constexpr int kStepKeys = W::kUnits * W::kUnitDepth;
  const int64_t ld = kAttentionChunk / W::kUnitDepth;
  V16 acc[MR][NP];
  Clear(acc);
  for (int64_t g = 0; g * kGroupTokens < chunk.keys; ++g) {
    const int64_t keys = chunk.keys - g * kGroupTokens < kGroupTokens ? chunk.keys - g * kGroupTokens : kGroupTokens;
    const std::byte* w[NP];
    HB_UNROLL
    for (int p = 0; p < NP; ++p) w[p] = chunk.v[g] + (panel + p) * kRawBytes;
    // The panels of a pass take their share of each group, one after the other.
    const int64_t steps = (keys + kStepKeys - 1) / kStepKeys, share = chunk.group_bytes * 16 / hp;
    const LinesAhead<NP> ahead = AheadOf<NP>(chunk.ahead_v[g] + panel * share, NP * share, steps);
    DotSteps<W, MR, NP>(w, chunk.v_stride, steps, b.p + g * (kGroupTokens / W::kUnitDepth), RowByRow{ld}, ahead, acc);
  }
  HB_UNROLL
  for (int r = 0; r < MR; ++r) {
    HB_UNROLL
    for (int p = 0; p < NP; ++p) Store(b.o + r * hp + (panel + p) * 16, acc[r][p]);
  }
}

template <class W, int MR>
void AttendChunk(const AttentionCall& c, const Chunk& chunk, const AttentionBuffers<W>& b, int64_t v0) {
  constexpr int kPanels = W::Panels(MR) < 4 ? W::Panels(MR) : 4;
  const int64_t hp = PaddedHeadDim(c.head_dim), groups = (chunk.keys + kGroupTokens - 1) / kGroupTokens;
  int64_t g = 0;
  for (; g + kPanels <= groups; g += kPanels) ScoreGroups<W, MR, kPanels>(c, chunk, b, v0, g);
  for (; g < groups; ++g) ScoreGroups<W, MR, 1>(c, chunk, b, v0, g);
  float m[MR], l[MR];
  for (int r = 0; r < MR; ++r) {
    int64_t position = c.first_position + (v0 + r) / c.group, end = position + 1 - chunk.key,
            begin = c.window > 0 ? position + 1 - c.window - chunk.key : 0;
    if (end > chunk.keys) end = chunk.keys;
    float* s = b.s + r * kAttentionChunk;
    if (begin >= end || end <= 0) {
      m[r] = -__builtin_inff();
      l[r] = 0;
      for (g = 0; g < groups; ++g) Store(s + g * 16, Zero());
    } else {
      l[r] = SoftmaxChunk(s, groups, begin, end, c.scale, &m[r]);
    }
    if constexpr (W::kUnitDepth == 2)
      for (g = 0; g < groups; ++g) StoreBf16(reinterpret_cast<uint16_t*>(b.p) + r * kAttentionChunk + g * 16, Load(s + g * 16));
  }
  int64_t panel = 0;
  for (; panel + kPanels <= hp / 16; panel += kPanels) WeighColumns<W, MR, kPanels>(chunk, b, hp, panel);
  for (; panel < hp / 16; ++panel) WeighColumns<W, MR, 1>(chunk, b, hp, panel);
  FoldPartials(MR, hp, c.m + v0, c.l + v0, c.o + v0 * hp, m, l, b.o);
}

template <class W>
using AttendFn = void (*)(const AttentionCall&, const Chunk&, const AttentionBuffers<W>&, int64_t);
template <class W, int... I>
constexpr auto MakeAttend(std::integer_sequence<int, I...>) {
  struct Table {
    AttendFn<W> fn[sizeof...(I)];
  };
  return Table{{&AttendChunk<W, I + 1>...}};
}

// q row by row in W's units.
template <class W>
inline void StageQueries(const AttentionCall& c, const AttentionBuffers<W>& b) {
  const int64_t hd = c.head_dim, ld = UnitsOf(hd, W::kUnitDepth);
  for (int64_t v = 0; v < c.rows * c.group; ++v) {
    const int64_t at = v / c.group * c.q_ld + v % c.group * hd;
    auto* q16 = static_cast<const uint16_t*>(c.q) + at;
    auto* q32 = static_cast<const float*>(c.q) + at;
    for (int64_t i = 0; i < hd; i += 16) {
      const V16 x = c.q_bf16 ? (hd - i >= 16 ? LoadBf16(q16 + i) : LoadBf16N(q16 + i, hd - i)) : LoadN(q32 + i, hd - i);
      if constexpr (W::kUnitDepth == 2) StoreBf16N(reinterpret_cast<uint16_t*>(b.q + v * ld) + i, x, hd - i);
      else StoreN(b.q + v * ld + i, x, hd - i);
    }
  }
}

// A group's K and V as W reads them, V with rows padded to 16 columns: for FP8 caches, and for heads whose width is no multiple
// of 16 (V's vectors would read past the cache's end). `copy` holds K [hd][16], then V [16][hp], elements of W's size; steps as
// in the cache's BF16 or F32 layout.
template <class W>
inline void CopyGroup(const AttentionCall& c, const std::byte* k, const std::byte* v, int64_t keys, std::byte* copy) {
  constexpr int64_t kBytes = W::kRawBytesPerValue;
  const int64_t hd = c.head_dim, hp = PaddedHeadDim(hd), pair = kBytes == 2 ? 2 : 1;
  std::byte* v_copy = copy + kGroupTokens * hp * kBytes;
  const bool fp8 = c.kv.spec.dtype == tensor::DType::kF8E4M3;
  if (fp8) ExpandFp8(k, kGroupTokens * hd, reinterpret_cast<uint16_t*>(copy));
  else __builtin_memcpy(copy, k, static_cast<size_t>(kGroupTokens * hd * kBytes));
  for (int64_t t = 0; t < keys; t += pair) {
    std::byte* to = v_copy + t * hp * kBytes;
    if (fp8) ExpandFp8(v + t * hd, pair * hd, reinterpret_cast<uint16_t*>(to));
    else __builtin_memcpy(to, v + t * hd * kBytes, static_cast<size_t>(pair * hd * kBytes));
    __builtin_memset(to + pair * hd * kBytes, 0, static_cast<size_t>(pair * (hp - hd) * kBytes));
  }
}

// Addresses of the chunk's groups in the cache.
inline void Locate(const AttentionCall& c, int64_t key, int64_t keys, const std::byte** k, const std::byte** v) {
  const int64_t hd = c.head_dim, bt = c.kv.spec.block_tokens, bytes = KvElementBytes(c.kv.spec.dtype);
  for (int64_t g = 0; g * kGroupTokens < keys; ++g) {
    const int64_t token = (key + g * kGroupTokens) % bt;
    const std::byte* part = HeadPart(c.kv, c.blocks[(key + g * kGroupTokens) / bt], c.kv_head);
    k[g] = part + token * hd * bytes;
    v[g] = part + (bt + token) * hd * bytes;
  }
}

template <class W>
inline Chunk FindChunk(const AttentionCall& c, int64_t key, const AttentionBuffers<W>& b) {
  constexpr int64_t kBytes = W::kRawBytesPerValue;
  const int64_t hp = PaddedHeadDim(c.head_dim), in_cache = KvElementBytes(c.kv.spec.dtype);
  const bool direct = in_cache == kBytes && c.head_dim == hp;
  Chunk chunk;
  chunk.key = key;
  chunk.keys = c.key_end - key < kAttentionChunk ? c.key_end - key : kAttentionChunk;
  chunk.v_stride = hp * 4;  // a pair of BF16 rows or a row of F32
  chunk.group_bytes = kGroupTokens * c.head_dim * in_cache;
  Locate(c, key, chunk.keys, chunk.k, chunk.v);
  // Where the next chunk is shorter than this one, this one's own lines stand in: they are there already.
  const std::byte *next_k[kChunkGroups], *next_v[kChunkGroups];
  const int64_t next = key + kAttentionChunk;
  for (int64_t g = 0; g < kChunkGroups; ++g) {
    next_k[g] = chunk.k[g];
    next_v[g] = chunk.v[g];
  }
  if (next < c.keys) Locate(c, next, c.keys - next < kAttentionChunk ? c.keys - next : kAttentionChunk, next_k, next_v);
  for (int64_t g = 0; g * kGroupTokens < chunk.keys; ++g) {
    chunk.ahead_k[g] = direct ? chunk.v[g] : next_k[g];
    chunk.ahead_v[g] = direct ? next_k[g] : next_v[g];
    if (direct) continue;
    std::byte* copy = b.copy + g * 2 * kGroupTokens * hp * kBytes;
    CopyGroup<W>(c, chunk.k[g], chunk.v[g],
                 chunk.keys - g * kGroupTokens < kGroupTokens ? chunk.keys - g * kGroupTokens : kGroupTokens, copy);
    chunk.k[g] = copy;
    chunk.v[g] = copy + kGroupTokens * hp * kBytes;
  }
  return chunk;
}

template <class W>
void AttentionOver(const AttentionCall& call) {
  static constexpr auto kAttend = MakeAttend<W>(std::make_integer_sequence<int, W::kTileRows>());
  const int64_t hp = PaddedHeadDim(call.head_dim), vectors = call.rows * call.group;
  for (int64_t v = 0; v < vectors; ++v) {
    call.m[v] = -__builtin_inff();
    call.l[v] = 0;
  }
  for (int64_t i = 0; i < vectors * hp; i += 16) Store(call.o + i, Zero());
  const AttentionBuffers<W> b = CarveBuffers<W>(call.scratch, call.head_dim);
  AttentionCall c = call;
  if (c.kv.spec.dtype == tensor::DType::kF8E4M3) c.scale *= c.kv.k_scale;  // v_scale is applied by the caller, at the end
  StageQueries<W>(c, b);
  for (int64_t key = c.key_begin; key < c.key_end; key += kAttentionChunk) {
    // A chunk that the window hides from every row adds nothing.
    if (c.window > 0 && key + kAttentionChunk <= c.first_position + 1 - c.window) continue;
    const Chunk chunk = FindChunk<W>(c, key, b);
    for (int64_t v = 0; v < vectors; v += W::kTileRows)
      kAttend.fn[(vectors - v < W::kTileRows ? vectors - v : W::kTileRows) - 1](c, chunk, b, v);
  }
}

}  // namespace
}  // namespace halfbyte::kernels::cpu
