// BF16 weights, BF16 rows, AMX tiles, for prompt rows. Bytes: 2 a weight; a product of 16 rows by 16 columns by 32 inner values (16 KFLOP) takes 16 cycles.
//
// The panels of layout.h are the second operand as they are. x comes in steps (layout.h): a tile load then reads 1 KiB in a row, where rows K apart would fall into
// the same sets of the cache. 256 inner values of two panels (16 KiB) stay in L1 while up to 256 rows pass; their sums (32 KiB) wait in `scratch` between the
// pieces, which rounds nothing. A row's sum is one chain of tile products over k.
#include "kernels/cpu/amx/kernels.h"
#include "kernels/cpu/amx/tiles.h"

namespace halfbyte::kernels::cpu {
namespace {

constexpr int64_t kPiece = 256;
constexpr int64_t kMostTiles = 8;  // of 32 rows
constexpr int64_t kSums = kAmxRows * kAmxColumns;

// What a task multiplies at once: two panels (or the last one twice) by some tiles of rows.
struct Pair {
  const std::byte* panel[2];
  const std::byte* x;   // of the first tile
  int64_t tile_bytes;   // from one tile of x to the next
  int64_t tiles, rows;  // rows: of all tiles
};

void MultiplyPiece(const Pair& p, int64_t k, int64_t steps, bool first, float* sums) {
  for (int64_t t = 0; t < p.tiles; ++t) {
    const bool two = p.rows - t * kAmxRows > 16;
    const std::byte* x = p.x + t * p.tile_bytes + k / kAmxStep * 2 * kAmxTileBytes;
    AmxBegin(first, two, sums + t * kSums);
    for (int64_t s = 0; s < steps; ++s) {
      const int64_t w = (k + s * kAmxStep) * kPanelRows * 2;
      AmxStepBy(x + s * 2 * kAmxTileBytes, x + (2 * s + 1) * kAmxTileBytes, 64, p.panel[0] + w, p.panel[1] + w, two);
    }
    AmxEnd(two, sums + t * kSums);
  }
}

void Multiply(const Pair& p, int64_t k_padded, float* sums) {
  static constexpr AmxConfig kFull = AmxShape(static_cast<int>(kAmxStep));
  const int64_t full = k_padded / kAmxStep * kAmxStep;
  _tile_loadconfig(&kFull);
  for (int64_t k = 0; k < full; k += kPiece) MultiplyPiece(p, k, (full - k < kPiece ? full - k : kPiece) / kAmxStep, k == 0, sums);
  if (full < k_padded) {
    const AmxConfig rest = AmxShape(static_cast<int>(k_padded - full));
    _tile_loadconfig(&rest);
    MultiplyPiece(p, full, 1, full == 0, sums);
  }
}

// A panel's columns of the sums to the rows of out.
void Write(const LinearCall& c, const float* sums, int64_t row, int64_t rows, int64_t panel) {
  const int64_t n = panel * kPanelRows, left = c.w.n - n;
  const auto mask = static_cast<__mmask16>(left >= kPanelRows ? 0xFFFF : (1 << left) - 1);
  const __m512 bias = c.bias ? _mm512_maskz_loadu_ps(mask, c.bias + n) : _mm512_setzero_ps();
  for (int64_t r = 0; r < rows; ++r) {
    float* out = c.out + (row + r) * c.out_ld + n;
    __m512 y = _mm512_loadu_ps(sums + r * kAmxColumns);
    if (c.bias) y = _mm512_add_ps(y, bias);
    if (c.accumulate) y = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, out), y);
    _mm512_mask_storeu_ps(out, mask, y);
  }
}

void Range(const LinearCall& c, int64_t panel_begin, int64_t panel_end, int64_t tile_begin, int64_t tile_end) {
  auto* sums = reinterpret_cast<float*>(c.scratch);
  const int64_t tile_bytes = kAmxRows * c.x_depth * 2;
  for (int64_t t = tile_begin; t < tile_end; t += kMostTiles) {
    const int64_t tiles = tile_end - t < kMostTiles ? tile_end - t : kMostTiles, row = t * kAmxRows;
    const int64_t rows = c.rows - row < tiles * kAmxRows ? c.rows - row : tiles * kAmxRows;
    for (int64_t panel = panel_begin; panel < panel_end; panel += 2) {
      const int64_t other = panel + 1 < panel_end ? panel + 1 : panel;
      const Pair p{{c.w.data + panel * c.w.panel_bytes, c.w.data + other * c.w.panel_bytes}, static_cast<const std::byte*>(c.x) + t * tile_bytes, tile_bytes, tiles, rows};
      Multiply(p, c.w.k_padded, sums);
      Write(c, sums, row, rows, panel);
      if (other != panel) Write(c, sums + 16, row, rows, other);
    }
  }
  _tile_release();
}

int64_t ScratchBytes(const LinearView&) { return kMostTiles * kSums * 4; }

}  // namespace

const LinearKernel kLinearBf16Bf16Amx = {"linear_bf16_bf16_amx", "amx", HasAmxBf16, LinearKind::kBf16, RowType::kBf16Steps, static_cast<int>(kAmxRows), &Range, nullptr, &ScratchBytes, false};

}  // namespace halfbyte::kernels::cpu
