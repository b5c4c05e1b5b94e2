// The one shape of every dense product: NP panels of 16 outputs times MR rows of x, all sums in registers. Include after vec.h
// and math.h.
//
// A weight policy W says how a panel's bytes become factors:
//   Unit, Wide      what x is made of (float, or a pair of BF16 as uint32_t) and its broadcast form
//   kUnits          units of k that one Raw (64 bytes of a panel) holds;  kUnitDepth  values of k in a unit
//   kTileRows       rows of x a tile has;  Panels(rows)  panels done at once for so many rows
//   Get(raw, j)     the 16 rows' factors of unit j;  Mac(acc, x, w)
//   kScaled         products of block b are summed alone and added as scale(b) * sum; otherwise one chain runs over all of K
//   kInCache        the panels were just written: nothing to fetch ahead
//   kOuter          the sums are multiplied by the weight's outer scale (times kOuterFactor) at the end
// Each output's chain of additions is the same for every MR, NP and range, so results do not depend on how rows or panels were
// cut.
#pragma once

#include <immintrin.h>

#include <utility>

#include "kernels/cpu/common/kernel_table.h"

namespace halfbyte::kernels::cpu {
namespace {

// Where the unit u of row r lies in x: tiles are packed with their rows side by side, attention's operands lie row by row.
template <int MR>
struct SideBySide {
  int64_t At(int64_t u, int r) const { return u * MR + r; }
};
struct RowByRow {
  int64_t ld;  // units
  int64_t At(int64_t u, int r) const { return r * ld + u; }
};

// What to fetch from memory while step s is computed: nothing, or the lines at[p] + s * step.
struct NothingAhead {
  void Fetch(int, int64_t) const {}
};
template <int NP>
struct LinesAhead {
  const std::byte* at[NP];
  int64_t step;
  void Fetch(int p, int64_t s) const { _mm_prefetch(reinterpret_cast<const char*>(at[p] + s * step), _MM_HINT_T0); }
};

// acc[r][p] += the products of `steps` raws from w[p] on (stride bytes apart) with x's units.
template <class W, int MR, int NP, class Layout, class Ahead>
inline void DotSteps(const std::byte* const (&w)[NP], int64_t stride, int64_t steps, const typename W::Unit* x, Layout layout,
                     const Ahead& ahead, V16 (&acc)[MR][NP]) {
  for (int64_t s = 0; s < steps; ++s, x += layout.At(W::kUnits, 0)) {
    typename W::Raw raw[NP];
    HB_UNROLL
    for (int p = 0; p < NP; ++p) {
      raw[p] = W::Load(w[p] + s * stride);
      ahead.Fetch(p, s);
    }
    HB_UNROLL
    for (int j = 0; j < W::kUnits; ++j) {
      typename W::Factor f[NP];
      HB_UNROLL
      for (int p = 0; p < NP; ++p) f[p] = W::Get(raw[p], j);
      HB_UNROLL
      for (int r = 0; r < MR; ++r) {
        typename W::Wide xr = W::Broadcast(x + layout.At(j, r));
        HB_UNROLL
        for (int p = 0; p < NP; ++p) acc[r][p] = W::Mac(acc[r][p], xr, f[p]);
      }
    }
  }
}

template <int MR, int NP>
inline void Clear(V16 (&acc)[MR][NP]) {
  HB_UNROLL
  for (int r = 0; r < MR; ++r) {
    HB_UNROLL
    for (int p = 0; p < NP; ++p) acc[r][p] = Zero();
  }
}

// The same panels a little further on. Hardware prefetchers stop at each page and follow few streams: one core of an Emerald
// Rapids guest reads 13.7 GB/s in a plain loop and 17.5 with this.
constexpr int64_t kFetchAhead = 2048;
template <int NP>
inline LinesAhead<NP> FurtherOn(const std::byte* const (&w)[NP]) {
  LinesAhead<NP> ahead;
  ahead.step = kRawBytes;
  HB_UNROLL
  for (int p = 0; p < NP; ++p) ahead.at[p] = w[p] + kFetchAhead;
  return ahead;
}

// Of the panels `panel`, `panel + apart`, ...
template <class W, int MR, int NP>
inline void LinearSums(const LinearView& v, int64_t panel, int64_t apart, const typename W::Unit* x, V16 (&sum)[MR][NP]) {
  const std::byte* w[NP];
  HB_UNROLL
  for (int p = 0; p < NP; ++p) w[p] = v.data + (panel + p * apart) * v.panel_bytes;
  Clear(sum);
  if constexpr (!W::kScaled) {
    const int64_t steps = v.k_padded / (W::kUnits * W::kUnitDepth);
    if constexpr (W::kInCache) DotSteps<W, MR, NP>(w, kRawBytes, steps, x, SideBySide<MR>(), NothingAhead(), sum);
    else DotSteps<W, MR, NP>(w, kRawBytes, steps, x, SideBySide<MR>(), FurtherOn(w), sum);
  } else {
    for (int64_t b = 0, blocks = W::Blocks(v); b < blocks; ++b) {
      V16 part[MR][NP];
      Clear(part);
      x += W::template Block<MR, NP>(v, panel, apart, w, b, x, part) * MR;
      HB_UNROLL
      for (int p = 0; p < NP; ++p) {
        V16 scale = W::Scale(v, panel + p * apart, w[p], b);
        HB_UNROLL
        for (int r = 0; r < MR; ++r) sum[r][p] = Fma(scale, part[r][p], sum[r][p]);
      }
    }
  }
}

template <class W, int MR, int NP>
void LinearTile(const LinearCall& c, int64_t panel, int64_t apart, const typename W::Unit* x, int64_t row) {
  V16 sum[MR][NP];
  LinearSums<W, MR, NP>(c.w, panel, apart, x, sum);
  HB_UNROLL
  for (int p = 0; p < NP; ++p) {
    int64_t n = (panel + p * apart) * kPanelRows, left = c.w.n - n;
    if (left > kPanelRows) left = kPanelRows;
    HB_UNROLL
    for (int r = 0; r < MR; ++r) {
      float* out = c.out + (row + r) * c.out_ld + n;
      V16 y = W::kOuter ? Mul(sum[r][p], Set1(c.w.outer * W::kOuterFactor)) : sum[r][p];
      if (c.bias) y = Add(y, LoadN(c.bias + n, left));
      if (c.accumulate) y = Add(LoadN(out, left), y);
      StoreN(out, y, left);
    }
  }
}

template <class W>
using LinearTileFn = void (*)(const LinearCall&, int64_t, int64_t, const typename W::Unit*, int64_t);

template <class W, int kPanels, int... I>
constexpr auto MakeLinearTiles(std::integer_sequence<int, I...>) {
  struct Table {
    LinearTileFn<W> fn[sizeof...(I)];
  };
  return Table{{&LinearTile<W, I + 1, (kPanels ? kPanels : W::Panels(I + 1))>...}};
}

// One tile over the panels [begin, end). Panels done together are `apart` from each other, 1 or as far as possible.
template <class W>
inline void LinearPanels(const LinearCall& c, int64_t begin, int64_t end, bool spread, int64_t tile) {
  static constexpr auto kWide = MakeLinearTiles<W, 0>(std::make_integer_sequence<int, W::kTileRows>());
  static constexpr auto kSingle = MakeLinearTiles<W, 1>(std::make_integer_sequence<int, W::kTileRows>());
  const int64_t row = tile * W::kTileRows, rows = c.rows - row < W::kTileRows ? c.rows - row : W::kTileRows;
  auto* x = static_cast<const typename W::Unit*>(c.x) + row * (c.x_depth / W::kUnitDepth);
  const int64_t wide = W::Panels(static_cast<int>(rows)), rounds = (end - begin) / wide, apart = spread ? rounds : 1,
                step = spread ? 1 : wide;
  for (int64_t i = 0; i < rounds; ++i) kWide.fn[rows - 1](c, begin + i * step, apart, x, row);
  for (int64_t panel = begin + rounds * wide; panel < end; ++panel) kSingle.fn[rows - 1](c, panel, 1, x, row);
}

// Several tiles pass over a few panels before the next ones, so that weights come from memory once. A single tile reads the range
// as several streams, each from its first byte to its last.
template <class W>
void LinearRange(const LinearCall& c, int64_t panel_begin, int64_t panel_end, int64_t tile_begin, int64_t tile_end) {
  if (tile_end - tile_begin == 1) return LinearPanels<W>(c, panel_begin, panel_end, true, tile_begin);
  constexpr int64_t kGroup = 4;
  for (int64_t group = panel_begin; group < panel_end; group += kGroup)
    for (int64_t t = tile_begin; t < tile_end; ++t)
      LinearPanels<W>(c, group, group + kGroup < panel_end ? group + kGroup : panel_end, false, t);
}

// Twice what a tile takes at once: a tile of x then comes from L3 once for both, and the copy (512 KiB of F32 at K = 2048) still fits
// L2.
template <class T>
constexpr int64_t DecodedPanels() {
  return 2 * T::Panels(T::kTileRows);
}

// The same outputs by way of a decoded copy: a few panels are written out as F32 or BF16 with their scales (in `scratch`, which
// stays in the cache) and multiplied as a plain matrix by all tiles. D::Decode(view, panel, out) writes a panel in T's layout; T
// knows no scales but the outer one.
template <class D, class T>
void DecodedRange(const LinearCall& c, int64_t panel_begin, int64_t panel_end, int64_t tile_begin, int64_t tile_end) {
  constexpr int64_t kGroup = DecodedPanels<T>();
  LinearCall d = c;
  d.w.panel_bytes = c.w.k_padded * kPanelRows * static_cast<int64_t>(sizeof(typename T::Unit)) / T::kUnitDepth;
  d.w.data = c.scratch;
  for (int64_t group = panel_begin; group < panel_end; group += kGroup) {
    int64_t panels = panel_end - group < kGroup ? panel_end - group : kGroup;
    for (int64_t p = 0; p < panels; ++p) D::Decode(c.w, group + p, c.scratch + p * d.w.panel_bytes);
    d.w.n = c.w.n - group * kPanelRows;
    d.out = c.out + group * kPanelRows;
    d.bias = c.bias ? c.bias + group * kPanelRows : nullptr;
    for (int64_t t = tile_begin; t < tile_end; ++t) LinearPanels<T>(d, 0, panels, false, t);
  }
}

template <class T>
int64_t DecodedBytes(const LinearView& v) {
  return DecodedPanels<T>() * v.k_padded * kPanelRows * static_cast<int64_t>(sizeof(typename T::Unit)) / T::kUnitDepth;
}

// What policies without block scales share.
struct PlainWeights {
  static constexpr bool kScaled = false, kOuter = false, kInCache = false;
  static constexpr float kOuterFactor = 1.0f;
};

// What FP32 policies share: x as floats, one FMA a unit.
struct F32Unit {
  using Unit = float;
  using Wide = V16;
  using Factor = V16;
  static constexpr int kUnitDepth = 1;
  static V16 Broadcast(const float* x) { return Set1(*x); }
  static V16 Mac(V16 acc, V16 x, V16 w) { return Fma(x, w, acc); }
};

// FP8's blocks: scale_k columns, one scale a panel or one a row. Raws hold 4 columns. Fast decodes columns without codes of
// exponent 0, Slow all of them; both give the value times 2^-8.
template <class Fast, class Slow>
struct Fp8Blocks {
  static constexpr bool kScaled = true, kOuter = false;
  static constexpr float kOuterFactor = 1.0f;
  static int64_t Blocks(const LinearView& v) { return v.scale_blocks; }

  // The flags of the groups from column k on, bit 0 first, of any of the NP panels.
  template <int NP>
  static uint64_t SmallCodes(const LinearView& v, int64_t panel, int64_t apart, int64_t k) {
    const int64_t g = k / kSmallCodeGroup;
    uint64_t flags = 0;
    HB_UNROLL
    for (int p = 0; p < NP; ++p) flags |= v.small_codes[(panel + p * apart) * v.small_words + g / 64];
    return flags >> (g % 64);
  }

  // 64 columns at a time where they are all fast, else 16. Columns that do not start at a group's border (scale_k may be
  // anything) are taken for slow.
  template <int MR, int NP>
  static int64_t Block(const LinearView& v, int64_t panel, int64_t apart, const std::byte* const (&w)[NP], int64_t b,
                       const typename Fast::Unit* x, V16 (&part)[MR][NP]) {
    constexpr int64_t kWide = 4 * kSmallCodeGroup;
    const int64_t begin = b * v.scale_k, end = begin + v.scale_k < v.k_padded ? begin + v.scale_k : v.k_padded;
    for (int64_t k = begin, columns; k < end; k += columns) {
      const uint64_t flags = SmallCodes<NP>(v, panel, apart, k);
      const bool wide = k % kWide == 0 && (flags & 0xF) == 0, fast = wide || (k % kSmallCodeGroup == 0 && (flags & 1) == 0);
      columns = wide ? kWide : kSmallCodeGroup;
      if (columns > end - k) columns = end - k;
      const std::byte* at[NP];
      HB_UNROLL
      for (int p = 0; p < NP; ++p) at[p] = w[p] + k * kPanelRows;
      if (fast) DotSteps<Fast, MR, NP>(at, kRawBytes, columns / 4, x, SideBySide<MR>(), FurtherOn(at), part);
      else DotSteps<Slow, MR, NP>(at, kRawBytes, columns / 4, x, SideBySide<MR>(), FurtherOn(at), part);
      x += columns / Fast::kUnitDepth * MR;
    }
    return (end - begin) / Fast::kUnitDepth;
  }

  static V16 ScaleOf(const LinearView& v, int64_t panel, int64_t b) {
    int64_t i = panel * v.scale_blocks + b;
    return v.scale_per_row ? Load(v.scales + i * kPanelRows) : Set1(v.scales[i]);
  }
  static V16 Scale(const LinearView& v, int64_t panel, const std::byte*, int64_t b) {
    return Mul(ScaleOf(v, panel, b), Set1(256.0f));
  }
};

// NVFP4's blocks of 16 columns in groups of 64 (layout.h); W's raws hold 8 columns. The block scale is widened through half
// precision, whose value is 2^-8 of E4M3's: the outer factor undoes it.
inline const std::byte* Nvfp4Codes(const std::byte* panel, int64_t b) {
  return panel + (b / 4) * kNvfp4GroupBytes + 64 + (b % 4) * 128;
}
inline V16 Nvfp4Scale(const std::byte* panel, int64_t b) {
  return WidenE4m3Bits(panel + (b / 4) * kNvfp4GroupBytes + (b % 4) * 16);
}

template <class W>
struct Nvfp4Blocks {
  static constexpr bool kScaled = true, kOuter = true;
  static constexpr float kOuterFactor = 256.0f;
  static int64_t Blocks(const LinearView& v) { return v.k / 16; }

  template <int MR, int NP>
  static int64_t Block(const LinearView&, int64_t, int64_t, const std::byte* const (&w)[NP], int64_t b, const typename W::Unit* x,
                       V16 (&part)[MR][NP]) {
    const std::byte* at[NP];
    HB_UNROLL
    for (int p = 0; p < NP; ++p) at[p] = Nvfp4Codes(w[p], b);
    DotSteps<W, MR, NP>(at, kRawBytes, 2, x, SideBySide<MR>(), FurtherOn(at), part);
    return 16 / W::kUnitDepth;
  }
  static V16 Scale(const LinearView&, int64_t, const std::byte* panel, int64_t b) { return Nvfp4Scale(panel, b); }
};

}  // namespace
}  // namespace halfbyte::kernels::cpu
