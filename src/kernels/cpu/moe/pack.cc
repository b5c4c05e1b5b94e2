// Canonical matrices into tiles. Tiles are written whole, padding included, so that a reload leaves nothing of the old weights.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/moe/experts.h"

namespace halfbyte::kernels::cpu::moe {
namespace {

// Eight codes k0..k7 (lowest nibble first) as low half k0 k2 k4 k6, high half k1 k3 k5 k7.
constexpr uint32_t Spread(uint32_t v) {
  uint32_t even = v & 0x0F0F0F0F, odd = (v >> 4) & 0x0F0F0F0F;
  even = (even | even >> 4) & 0x00FF00FF;
  odd = (odd | odd >> 4) & 0x00FF00FF;
  return ((even | even >> 8) & 0xFFFF) | (odd | odd >> 8) << 16;
}
static_assert(Spread(0x76543210) == 0x75316420);

// body(lane, first column, last column + 1) over patches of 128 columns: a row writes a few bytes of every line of its tile, and by patches the lines stay in L1
// until all 16 rows have written theirs. (Row after row a tile of K = 2048 went through L2 sixteen times: half of a converting load's time.)
template <typename Body>
void ForPatches(int64_t rows, int64_t cols, const Body& body) {
  constexpr int64_t kColumns = 128;
  for (int64_t c = 0; c < cols; c += kColumns)
    for (int64_t lane = 0; lane < rows; ++lane) body(lane, c, std::min(c + kColumns, cols));
}

// `n` blocks (at most 4) of one row into its lane of a group.
inline void PackLane(const uint8_t* codes, const uint8_t* scales, int64_t n, std::byte* group, int64_t lane) {
  uint32_t v[8];
  std::memcpy(v, codes, static_cast<size_t>(n * 8));
  for (int64_t i = 0; i < 2 * n; ++i) v[i] = Spread(v[i]);
  for (int64_t i = 0; i < 2 * n; ++i) std::memcpy(group + i * 64 + lane * 4, v + i, 4);
  for (int64_t b = 0; b < n; ++b) group[512 + b * kTile + lane] = std::byte{scales[b]};
}

void PackNvfp4(const QuantizedMatrix& m, int64_t row0, int64_t rows, std::byte* tile) {
  const int64_t blocks = m.cols / kG;
  const auto* codes = static_cast<const uint8_t*>(m.elements) + row0 * (m.cols / 2);
  const auto* scales = static_cast<const uint8_t*>(m.block_scales) + row0 * blocks;
  if (rows < kTile || blocks % 4 != 0) std::memset(tile, 0, static_cast<size_t>(Nvfp4TileBytes(m.cols)));
  for (int64_t b = 0; b < blocks; b += 4) {
    std::byte* group = tile + b / 4 * Nvfp4GroupBytes();
    for (int64_t lane = 0; lane < rows; ++lane) {
      const uint8_t *row = codes + lane * (m.cols / 2) + b * 8, *scale = scales + lane * blocks + b;
      if (blocks - b >= 4) PackLane(row, scale, 4, group, lane);
      else PackLane(row, scale, blocks - b, group, lane);
    }
  }
}

void PackFp8(const QuantizedMatrix& m, const PartLayout& p, int64_t row0, int64_t rows, std::byte* tile) {
  if (rows < kTile || m.cols % kG != 0) std::memset(tile, 0, static_cast<size_t>(p.tile_bytes));
  const int64_t blocks = (m.cols + p.block_cols - 1) / p.block_cols;
  auto* scales = reinterpret_cast<float*>(tile);
  std::byte* codes = tile + blocks * kTile * 4;
  for (int64_t lane = 0; lane < rows; ++lane) {
    const int64_t r = row0 + lane;
    const float* source = m.outer;  // per tensor
    if (m.format.block_scale) source = static_cast<const float*>(m.block_scales) + r / m.format.block_rows * blocks;
    else if (m.format.outer == tensor::Outer::kPerRow) source = m.outer + r;
    for (int64_t b = 0; b < blocks; ++b) scales[b * kTile + lane] = source[b];
  }
  ForPatches(rows, m.cols, [&](int64_t lane, int64_t begin, int64_t end) {
    const auto* row = static_cast<const std::byte*>(m.elements) + (row0 + lane) * m.cols;
    for (int64_t k = begin; k < end; ++k) codes[k * kTile + lane] = row[k];
  });
}

void PackBf16(const QuantizedMatrix& m, int64_t row0, int64_t rows, std::byte* tile) {
  if (rows < kTile || m.cols % kG != 0) std::memset(tile, 0, static_cast<size_t>(RoundUp(m.cols, kG) * kTile * 2));
  auto* out = reinterpret_cast<uint16_t*>(tile);
  ForPatches(rows, m.cols, [&](int64_t lane, int64_t begin, int64_t end) {
    const auto* row = static_cast<const uint16_t*>(m.elements) + (row0 + lane) * m.cols;
    int64_t k = begin;
    for (; k + 2 <= end; k += 2) std::memcpy(out + k * kTile + lane * 2, row + k, 4);
    for (; k < end; ++k) out[k / 2 * 32 + lane * 2 + k % 2] = row[k];
  });
}

void PackF32(const QuantizedMatrix& m, int64_t row0, int64_t rows, std::byte* tile) {
  if (rows < kTile || m.cols % kG != 0) std::memset(tile, 0, static_cast<size_t>(RoundUp(m.cols, kG) * kTile * 4));
  auto* out = reinterpret_cast<float*>(tile);
  ForPatches(rows, m.cols, [&](int64_t lane, int64_t begin, int64_t end) {
    const auto* row = static_cast<const float*>(m.elements) + (row0 + lane) * m.cols;
    for (int64_t k = begin; k < end; ++k) out[k * kTile + lane] = row[k];
  });
}

// E4M3 has NaN at 0x7F, E5M2 infinity at 0x7C and NaN above.
base::Status CheckFinite(const QuantizedMatrix& m) {
  const uint8_t first_bad = m.format.elem == DType::kF8E5M2 ? 0x7C : 0x7F;
  const auto* codes = static_cast<const uint8_t*>(m.elements);
  const int64_t n = m.rows * m.cols;
  uint8_t worst = 0;
  for (int64_t i = 0; i < n; ++i) worst = std::max<uint8_t>(worst, codes[i] & 0x7F);
  if (worst < first_bad) return {};
  const auto bad = std::count_if(codes, codes + n, [&](uint8_t c) { return (c & 0x7F) >= first_bad; });
  return base::Fail(base::ErrorCode::kBadFile, bad, " of ", n, " FP8 values are not finite");
}

}  // namespace

base::Status PackTiles(const QuantizedMatrix& matrix, const PartLayout& p, std::byte* tile0) {
  if (p.kind == WeightKind::kFp8) HB_RETURN_IF_ERROR(CheckFinite(matrix));
  for (int64_t t = 0; t < p.tiles; ++t) {
    const int64_t row0 = t * kTile, rows = std::clamp<int64_t>(p.n - row0, 0, kTile);
    std::byte* tile = tile0 + t * p.stride;
    switch (p.kind) {
      case WeightKind::kNvfp4: PackNvfp4(matrix, row0, rows, tile); break;
      case WeightKind::kFp8: PackFp8(matrix, p, row0, rows, tile); break;
      case WeightKind::kBf16: PackBf16(matrix, row0, rows, tile); break;
      case WeightKind::kF32: PackF32(matrix, row0, rows, tile); break;
    }
  }
  return {};
}

}  // namespace halfbyte::kernels::cpu::moe
