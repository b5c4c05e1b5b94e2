// NVFP4 weights by INT8 rows (w4a8) and by NVFP4 rows (W4A4) with AVX2: the arithmetic of the AVX-512 VNNI file on 8 lanes.
//
// vpmaddubsw makes pairs of u8 x s8 products in INT16: with weights offset to 0..24 and codes of +-127 a pair is at most 6,096 and the four pairs of a
// block's 16 values at most 24,384, so a whole block is summed in INT16 before one vpmaddwd widens it: 11 operations for 128 products.
#include <immintrin.h>

#include "kernels/cpu/moe/kernel.h"
#include "kernels/cpu/moe/vector_math_avx2.h"

namespace halfbyte::kernels::cpu::moe {
namespace {

constexpr int kRows = 4;  // 4 accumulators, 4 code vectors, scale and its undoing, ones: with more rows of the 16 registers they would spill
constexpr int64_t kPiece = 256;
constexpr int64_t kPieceBlocks = kPiece / kG;
constexpr int64_t kBlockBytes = 4 * 32 + 32;  // of a decoded block of 8 columns

// 8 columns of one block: u8 codes, a dword of 4 a lane, in the order of the records; scales times 2^-8.
struct BlockOfTile {
  __m256i v[4];
  __m256 scale;
};

// Columns 8 * half .. 8 * half + 7, straight from the packed tile.
struct Packed {
  const std::byte* tile;
  int half;
  BlockOfTile operator()(int64_t b) const {
    const __m256i table = _mm256_broadcastsi128_si256(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
    const __m256i nibble = _mm256_set1_epi8(15);
    const std::byte* group = tile + b / 4 * Nvfp4GroupBytes();
    if (b % 4 == 0) PrefetchGroup(group);
    const auto* codes = reinterpret_cast<const __m256i*>(group + b % 4 * 128 + half * 32);
    const __m256i lo = _mm256_load_si256(codes), hi = _mm256_load_si256(codes + 2);
    return {{_mm256_shuffle_epi8(table, _mm256_and_si256(lo, nibble)), _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi32(lo, 4), nibble)),
             _mm256_shuffle_epi8(table, _mm256_and_si256(hi, nibble)), _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi32(hi, 4), nibble))},
            E4m3Scaled8(group + 512 + b % 4 * kTile + half * 8)};
  }
};

struct Panel {
  const std::byte* blocks;
  int64_t first;
  BlockOfTile operator()(int64_t b) const {
    const auto* p = reinterpret_cast<const __m256i*>(blocks + (b - first) * kBlockBytes);
    return {{_mm256_load_si256(p), _mm256_load_si256(p + 1), _mm256_load_si256(p + 2), _mm256_load_si256(p + 3)}, _mm256_castsi256_ps(_mm256_load_si256(p + 4))};
  }
};

void Decode(const Packed& packed, int64_t begin, int64_t end, std::byte* out) {
  for (int64_t b = begin; b < end; ++b, out += kBlockBytes) {
    const BlockOfTile w = packed(b);
    auto* p = reinterpret_cast<__m256i*>(out);
    for (int i = 0; i < 4; ++i) _mm256_store_si256(p + i, w.v[i]);
    _mm256_store_si256(p + 4, _mm256_castps_si256(w.scale));
  }
}

struct Row {
  const std::byte* record;
  int64_t kp;
  const int32_t* dwords() const { return reinterpret_cast<const int32_t*>(record); }
  const int32_t* start() const { return reinterpret_cast<const int32_t*>(record + BiasOffset(kp)); }
  const float* scale() const { return reinterpret_cast<const float*>(record + ScaleOffset(kp)); }
};

// kMagic + d (see `start` in kernel.h) as bits.
inline __m256i Dot(const BlockOfTile& w, const int32_t* codes, int32_t start) {
  const __m256i p0 = _mm256_maddubs_epi16(w.v[0], _mm256_set1_epi32(codes[0])), p1 = _mm256_maddubs_epi16(w.v[1], _mm256_set1_epi32(codes[1]));
  const __m256i p2 = _mm256_maddubs_epi16(w.v[2], _mm256_set1_epi32(codes[2])), p3 = _mm256_maddubs_epi16(w.v[3], _mm256_set1_epi32(codes[3]));
  const __m256i sum = _mm256_add_epi16(_mm256_add_epi16(p0, p1), _mm256_add_epi16(p2, p3));
  return _mm256_add_epi32(_mm256_madd_epi16(sum, _mm256_set1_epi16(1)), _mm256_set1_epi32(start));
}

// As in the AVX-512 file, for 8 columns.
template <int kBlocksPerScale, int R, typename Source>
void Block(const Source& source, int64_t k, int64_t begin, int64_t end, const std::byte* const* rows, float* sums) {
  Row row[R];
  __m256 acc[R];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    row[r] = {rows[r], k};
    acc[r] = begin == 0 ? _mm256_setzero_ps() : _mm256_loadu_ps(sums + r * kPair);
  }
  for (int64_t b = begin; b < end; ++b) {
    const BlockOfTile w = source(b);
    const __m256 undo = _mm256_mul_ps(w.scale, _mm256_set1_ps(-kMagicValue));
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const __m256i d = Dot(w, row[r].dwords() + b * 4, row[r].start()[b]);
      const __m256 scaled = _mm256_fmadd_ps(_mm256_castsi256_ps(d), w.scale, undo);
      acc[r] = _mm256_fmadd_ps(scaled, _mm256_set1_ps(row[r].scale()[b / kBlocksPerScale]), acc[r]);
    }
  }
  const __m256 last = _mm256_set1_ps(end == k / kG ? 256.0f : 1.0f);
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) _mm256_storeu_ps(sums + r * kPair, _mm256_mul_ps(acc[r], last));
}

template <int kBlocksPerScale, typename Source>
struct Blocks {
  using Fn = void (*)(const Source&, int64_t, int64_t, int64_t, const std::byte* const*, float*);
  template <int R> static constexpr Fn kOf = Block<kBlocksPerScale, R, Source>;
  static constexpr Fn kBy[kRows + 1] = {nullptr, kOf<1>, kOf<2>, kOf<3>, kOf<4>};
};

template <int kBlocksPerScale>
void Gemm(const GemmCall& c) {
  const int64_t blocks = c.k / kG;
  for (int quarter = 0; quarter < 4; ++quarter) {  // 8 columns of the pair
    const Packed packed{c.w[quarter / 2].data, quarter % 2};
    float* sums = c.sums + quarter * 8;
    if (c.m <= kRows) {
      Blocks<kBlocksPerScale, Packed>::kBy[c.m](packed, c.k, 0, blocks, c.rows, sums);
      continue;
    }
    alignas(64) std::byte piece[kPieceBlocks * kBlockBytes];
    for (int64_t begin = 0; begin < blocks; begin += kPieceBlocks) {
      const int64_t end = begin + kPieceBlocks < blocks ? begin + kPieceBlocks : blocks;
      Decode(packed, begin, end, piece);
      for (int64_t r = 0; r < c.m; r += kRows) {
        const int64_t n = c.m - r < kRows ? c.m - r : kRows;
        Blocks<kBlocksPerScale, Panel>::kBy[n](Panel{piece, begin}, c.k, begin, end, c.rows + r, sums + r * kPair);
      }
    }
  }
}

constexpr MoeKernel kKernels[] = {
    {"moe_gemm_nvfp4_int8_avx2", Isa::kAvx2, WeightKind::kNvfp4, RowFormat::kInt8, nullptr, Gemm<2>, 4, 4, false},
    {"moe_gemm_nvfp4_nvfp4_avx2", Isa::kAvx2, WeightKind::kNvfp4, RowFormat::kNvfp4, nullptr, Gemm<1>, 4, 4, false},
};

}  // namespace

MoeKernelList MoeKernelsInt8Avx2() { return {kKernels, sizeof kKernels / sizeof kKernels[0]}; }

}  // namespace halfbyte::kernels::cpu::moe
