// NVFP4 weights by INT8 rows (w4a8) and by NVFP4 rows (W4A4) in integer dot products, exact: 2 x E2M1 is an integer in [-12, 12].
//
// Weights are made unsigned by adding 12 in the lookup table, because vpdpbusd wants u8 x s8; the accumulator of a block starts at a number of the
// row's record (kernel.h) that undoes it and makes the finished bits readable as FP32: kMagicValue + d. One FMA then gives d * ws exactly:
// bits * ws - kMagicValue * ws, so converting costs nothing.
// vpermb looks at 6 bits of an index: with the 16 entries repeated four times the two bits above a nibble do not matter, and neither
// code vector has to be masked.
//
// Sums of a row: acc = fma(d * ws, s, acc) for each block of 16 inner values, s being the scale of the row's block (W4A4) or group of 32 (w4a8).
// Operations a block, tile and row: 4 vpdpbusd and 2 FMAs, so two thirds of the vpdpbusd peak are the ceiling. Rows are broadcast from memory, and a
// broadcast serves two tiles: with one tile (12 rows x 1, tried) the load ports were as busy as the multipliers and 45 % of the peak was reached.
// Decoding is shared by 6 rows; where a call has more, 256 inner values are decoded at a time into L1 and all rows meet them. (Which of the two happens
// does not change a row's operations.)
#include <immintrin.h>

#include "kernels/cpu/moe/kernel.h"
#include "kernels/cpu/moe/vector_math_avx512.h"

namespace halfbyte::kernels::cpu::moe {
namespace {

constexpr int kRows = 6;
constexpr int64_t kPiece = 256;
constexpr int64_t kPieceBlocks = kPiece / kG;

// 16 columns of one block: u8 codes, a dword of 4 a lane, in the order of the records; scales times 2^-8.
struct BlockOfTile {
  __m512i v[4];
  __m512 scale;
};

// Blocks straight from the packed tile.
struct Packed {
  const std::byte* tile;
  __m512i table = _mm512_broadcast_i32x4(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
  BlockOfTile operator()(int64_t b) const {
    const std::byte* group = tile + b / 4 * Nvfp4GroupBytes();
    if (b % 4 == 0) PrefetchGroup(group);
    const __m512i lo = _mm512_load_si512(group + b % 4 * 128), hi = _mm512_load_si512(group + b % 4 * 128 + 64);
    return {{_mm512_permutexvar_epi8(lo, table), _mm512_permutexvar_epi8(_mm512_srli_epi32(lo, 4), table), _mm512_permutexvar_epi8(hi, table),
             _mm512_permutexvar_epi8(_mm512_srli_epi32(hi, 4), table)},
            E4m3Scaled(group + 512 + b % 4 * kTile)};
  }
};

// Decoded blocks of a piece: 5 vectors each.
struct Panel {
  const std::byte* blocks;
  int64_t first;
  BlockOfTile operator()(int64_t b) const {
    const std::byte* p = blocks + (b - first) * 320;
    return {{_mm512_load_si512(p), _mm512_load_si512(p + 64), _mm512_load_si512(p + 128), _mm512_load_si512(p + 192)}, _mm512_load_ps(p + 256)};
  }
};

void Decode(const std::byte* tile, int64_t begin, int64_t end, std::byte* out) {
  const Packed packed{tile};
  for (int64_t b = begin; b < end; ++b, out += 320) {
    const BlockOfTile w = packed(b);
    for (int i = 0; i < 4; ++i) _mm512_store_si512(out + 64 * i, w.v[i]);
    _mm512_store_ps(out + 256, w.scale);
  }
}

struct Row {
  const std::byte* record;
  int64_t kp;
  const int32_t* dwords() const { return reinterpret_cast<const int32_t*>(record); }
  const int32_t* start() const { return reinterpret_cast<const int32_t*>(record + BiasOffset(kp)); }
  const float* scale() const { return reinterpret_cast<const float*>(record + ScaleOffset(kp)); }
};

// What d * scale has too much when the bits of kMagic + d are read as a number.
inline __m512 Undo(const BlockOfTile& w) { return _mm512_mul_ps(w.scale, _mm512_set1_ps(-kMagicValue)); }

// Blocks [begin, end) of the inner length, added to sums where begin > 0. kBlocksPerScale: of the rows' scales.
template <int kBlocksPerScale, int R, typename Source>
void Block(const Source* w, int64_t k, int64_t begin, int64_t end, const std::byte* const* rows, float* sums) {
  Row row[R];
  __m512 acc[R][2];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
    row[r] = {rows[r], k};
    for (int t = 0; t < 2; ++t) acc[r][t] = begin == 0 ? _mm512_setzero_ps() : _mm512_loadu_ps(sums + r * kPair + t * kTile);
  }
  for (int64_t b = begin; b < end; ++b) {
    const BlockOfTile w0 = w[0](b), w1 = w[1](b);
    const __m512 undo0 = Undo(w0), undo1 = Undo(w1);
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      const int32_t* codes = row[r].dwords() + b * 4;
      __m512i d0 = _mm512_set1_epi32(row[r].start()[b]), d1 = d0;
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const __m512i x = _mm512_set1_epi32(codes[i]);
        d0 = _mm512_dpbusd_epi32(d0, w0.v[i], x);
        d1 = _mm512_dpbusd_epi32(d1, w1.v[i], x);
      }
      const __m512 scale = _mm512_set1_ps(row[r].scale()[b / kBlocksPerScale]);
      acc[r][0] = _mm512_fmadd_ps(_mm512_fmadd_ps(_mm512_castsi512_ps(d0), w0.scale, undo0), scale, acc[r][0]);
      acc[r][1] = _mm512_fmadd_ps(_mm512_fmadd_ps(_mm512_castsi512_ps(d1), w1.scale, undo1), scale, acc[r][1]);
    }
  }
  const __m512 last = _mm512_set1_ps(end == k / kG ? 256.0f : 1.0f);
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
    for (int t = 0; t < 2; ++t) _mm512_storeu_ps(sums + r * kPair + t * kTile, _mm512_mul_ps(acc[r][t], last));
  }
}

template <int kBlocksPerScale, typename Source>
struct Blocks {
  using Fn = void (*)(const Source*, int64_t, int64_t, int64_t, const std::byte* const*, float*);
  template <int R> static constexpr Fn kOf = Block<kBlocksPerScale, R, Source>;
  static constexpr Fn kBy[kRows + 1] = {nullptr, kOf<1>, kOf<2>, kOf<3>, kOf<4>, kOf<5>, kOf<6>};
};

// The next rows' part of a piece: 4 lines of codes, one of starts, one of scales. Many rows do not stay in L1 between pieces, and the load ports have no
// slack to wait (24 rows and more fell from 51 % of the peak to 36 % where the other hyperthread was busy).
inline void PrefetchRows(const std::byte* const* rows, int64_t n, int64_t k, int64_t begin) {
  for (int64_t r = 0; r < n; ++r) {
    const auto* p = reinterpret_cast<const char*>(rows[r]);
    for (int line = 0; line < kPiece / 64; ++line) _mm_prefetch(p + begin * kG + line * 64, _MM_HINT_T0);
    _mm_prefetch(p + BiasOffset(k) + begin * 4, _MM_HINT_T0);
    _mm_prefetch(p + ScaleOffset(k) + begin * 4, _MM_HINT_T0);
  }
}

template <int kBlocksPerScale>
void Gemm(const GemmCall& c) {
  const int64_t blocks = c.k / kG;
  if (c.m <= kRows) {
    const Packed packed[2] = {{c.w[0].data}, {c.w[1].data}};
    Blocks<kBlocksPerScale, Packed>::kBy[c.m](packed, c.k, 0, blocks, c.rows, c.sums);
    return;
  }
  alignas(64) std::byte pieces[2][kPieceBlocks * 320];
  for (int64_t begin = 0; begin < blocks; begin += kPieceBlocks) {
    const int64_t end = begin + kPieceBlocks < blocks ? begin + kPieceBlocks : blocks;
    for (int t = 0; t < 2; ++t) Decode(c.w[t].data, begin, end, pieces[t]);
    const Panel panels[2] = {{pieces[0], begin}, {pieces[1], begin}};
    for (int64_t r = 0; r < c.m; r += kRows) {
      const int64_t n = c.m - r < kRows ? c.m - r : kRows, next = r + kRows < c.m ? r + kRows : 0;
      PrefetchRows(c.rows + next, c.m - next < kRows ? c.m - next : kRows, c.k, next > 0 ? begin : end < blocks ? end : 0);
      Blocks<kBlocksPerScale, Panel>::kBy[n](panels, c.k, begin, end, c.rows + r, c.sums + r * kPair);
    }
  }
}

constexpr MoeKernel kKernels[] = {
    {"moe_gemm_nvfp4_int8_avx512vnni", Isa::kAvx512Vnni, WeightKind::kNvfp4, RowFormat::kInt8, nullptr, Gemm<2>, 6, 6, false},
    {"moe_gemm_nvfp4_nvfp4_avx512vnni", Isa::kAvx512Vnni, WeightKind::kNvfp4, RowFormat::kNvfp4, nullptr, Gemm<1>, 6, 6, false},
};

}  // namespace

MoeKernelList MoeKernelsAvx512Vnni() { return {kKernels, sizeof kKernels / sizeof kKernels[0]}; }

}  // namespace halfbyte::kernels::cpu::moe
