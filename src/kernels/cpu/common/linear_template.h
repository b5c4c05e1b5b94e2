// The one shape of every dense product: NP panels of 16 outputs times MR rows of x, all sums in registers. Include after vec.h and math.h.
//
// A weight policy W says how a panel's bytes become factors:
//   Unit, Wide      what x is made of (float, or a pair of BF16 as uint32_t) and its broadcast form
//   kUnits          units of k that one Raw (a step's bytes) holds;  kStepBytes  its size
//   kTileRows       rows of x a tile has;  kPanels  panels done at once for MR rows
//   Get(raw, j)     the 16 rows' factors of unit j;  Mac(acc, x, w)
//   kScaled         products of block b are summed alone and added as scale(b) * sum; otherwise one chain runs over all of K
// Each output's chain of additions is the same for every MR, NP and range, so results do not depend on how rows or panels were cut.
#pragma once

#include <utility>

#include "kernels/cpu/common/kernel_table.h"

namespace halfbyte::kernels::cpu {
namespace {

template <class W, int MR, int NP>
inline void LinearSteps(const std::byte* const (&w)[NP], int64_t steps, const typename W::Unit* x, V16 (&acc)[MR][NP]) {
  for (int64_t s = 0; s < steps; ++s, x += W::kUnits * MR) {
    typename W::Raw raw[NP];
    HB_UNROLL
    for (int p = 0; p < NP; ++p) raw[p] = W::Load(w[p] + s * W::kStepBytes);
    HB_UNROLL
    for (int j = 0; j < W::kUnits; ++j) {
      typename W::Factor f[NP];
      HB_UNROLL
      for (int p = 0; p < NP; ++p) f[p] = W::Get(raw[p], j);
      HB_UNROLL
      for (int r = 0; r < MR; ++r) {
        typename W::Wide xr = W::Broadcast(x + j * MR + r);
        HB_UNROLL
        for (int p = 0; p < NP; ++p) acc[r][p] = W::Mac(acc[r][p], xr, f[p]);
      }
    }
  }
}

template <class W, int MR, int NP>
inline void LinearSums(const LinearView& v, int64_t panel, const typename W::Unit* x, V16 (&sum)[MR][NP]) {
  const std::byte* w[NP];
  HB_UNROLL
  for (int p = 0; p < NP; ++p) w[p] = v.data + (panel + p) * v.panel_bytes;
  HB_UNROLL
  for (int r = 0; r < MR; ++r)
    HB_UNROLL
    for (int p = 0; p < NP; ++p) sum[r][p] = Zero();
  if constexpr (!W::kScaled) {
    LinearSteps<W, MR, NP>(w, W::Steps(v, 0), x, sum);
  } else {
    for (int64_t b = 0, blocks = W::Blocks(v); b < blocks; ++b) {
      V16 part[MR][NP];
      HB_UNROLL
      for (int r = 0; r < MR; ++r)
        HB_UNROLL
        for (int p = 0; p < NP; ++p) part[r][p] = Zero();
      const std::byte* at[NP];
      HB_UNROLL
      for (int p = 0; p < NP; ++p) at[p] = w[p] + W::BlockOffset(v, b);
      int64_t steps = W::Steps(v, b);
      LinearSteps<W, MR, NP>(at, steps, x, part);
      x += steps * W::kUnits * MR;
      HB_UNROLL
      for (int p = 0; p < NP; ++p) {
        V16 scale = W::Scale(v, panel + p, w[p], b);
        HB_UNROLL
        for (int r = 0; r < MR; ++r) sum[r][p] = Fma(scale, part[r][p], sum[r][p]);
      }
    }
  }
}

template <class W, int MR, int NP>
void LinearTile(const LinearCall& c, int64_t panel, const typename W::Unit* x, int64_t row) {
  V16 sum[MR][NP];
  LinearSums<W, MR, NP>(c.w, panel, x, sum);
  HB_UNROLL
  for (int p = 0; p < NP; ++p) {
    int64_t n = (panel + p) * kPanelRows, left = c.w.n - n;
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
using LinearTileFn = void (*)(const LinearCall&, int64_t, const typename W::Unit*, int64_t);

template <class W, int kPanels, int... I>
constexpr auto MakeLinearTiles(std::integer_sequence<int, I...>) {
  struct Table { LinearTileFn<W> fn[sizeof...(I)]; };
  return Table{{&LinearTile<W, I + 1, kPanels ? kPanels : W::Panels(I + 1)>...}};
}

// Panels are taken a few at a time and every tile of x passes over them before the next ones, so that weights come from memory once.
template <class W>
void LinearRange(const LinearCall& c, int64_t panel_begin, int64_t panel_end, int64_t tile_begin, int64_t tile_end) {
  static constexpr auto kWide = MakeLinearTiles<W, 0>(std::make_integer_sequence<int, W::kTileRows>());
  static constexpr auto kSingle = MakeLinearTiles<W, 1>(std::make_integer_sequence<int, W::kTileRows>());
  constexpr int64_t kGroup = 4;
  const int64_t x_units = c.x_depth / W::kUnitDepth;
  for (int64_t group = panel_begin; group < panel_end; group += kGroup) {
    int64_t group_end = group + kGroup < panel_end ? group + kGroup : panel_end;
    for (int64_t t = tile_begin; t < tile_end; ++t) {
      int64_t row = t * W::kTileRows, rows = c.rows - row < W::kTileRows ? c.rows - row : W::kTileRows;
      auto* x = static_cast<const typename W::Unit*>(c.x) + row * x_units;
      int64_t wide = W::Panels(static_cast<int>(rows)), panel = group;
      for (; panel + wide <= group_end; panel += wide) kWide.fn[rows - 1](c, panel, x, row);
      for (; panel < group_end; ++panel) kSingle.fn[rows - 1](c, panel, x, row);
    }
  }
}

// What FP32 policies share: x as floats, one FMA a unit.
struct F32Unit {
  using Unit = float;
  using Wide = V16;
  using Factor = V16;
  static constexpr int kUnitDepth = 1;
  static V16 Broadcast(const float* x) { return Set1(*x); }
  static V16 Mac(V16 acc, V16 x, V16 w) { return Fma(x, w, acc); }
};

// FP8's blocks: scale_k columns, one scale a panel or one a row.
template <int kColumnsAStep, int kStepBytes>
struct Fp8Blocks {
  static constexpr bool kScaled = true, kOuter = false;
  static constexpr float kOuterFactor = 1.0f;
  static int64_t Blocks(const LinearView& v) { return v.scale_blocks; }
  static int64_t Steps(const LinearView& v, int64_t b) {
    int64_t left = v.k_padded - b * v.scale_k;
    return (left < v.scale_k ? left : v.scale_k) / kColumnsAStep;
  }
  static int64_t BlockOffset(const LinearView& v, int64_t b) { return b * (v.scale_k / kColumnsAStep) * kStepBytes; }
  static V16 Scale(const LinearView& v, int64_t panel, const std::byte*, int64_t b) {
    int64_t i = panel * v.scale_blocks + b;
    return v.scale_per_row ? Load(v.scales + i * kPanelRows) : Set1(v.scales[i]);
  }
};

// NVFP4's blocks of 16 columns in groups of 64 (layout.h). The block scale is widened through half precision, whose value is 2^-8 of E4M3's: the outer factor undoes it.
struct Nvfp4Blocks {
  static constexpr bool kScaled = true, kOuter = true;
  static constexpr float kOuterFactor = 256.0f;
  static constexpr int64_t kGroupBytes = 576;
  static int64_t Blocks(const LinearView& v) { return v.k_padded / 16; }
  static int64_t Steps(const LinearView&, int64_t) { return 2; }
  static int64_t BlockOffset(const LinearView&, int64_t b) { return (b / 4) * kGroupBytes + 64 + (b % 4) * 128; }
  static V16 Scale(const LinearView&, int64_t, const std::byte* panel, int64_t b) { return WidenE4m3Bits(panel + (b / 4) * kGroupBytes + (b % 4) * 16); }
};

}  // namespace
}  // namespace halfbyte::kernels::cpu
