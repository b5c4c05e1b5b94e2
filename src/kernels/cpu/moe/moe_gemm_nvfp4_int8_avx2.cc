// NVFP4 weights by INT8 rows (w4a8) and by NVFP4 rows (W4A4) with AVX2: the arithmetic of the AVX-512 VNNI file on 8 lanes.
//
// vpmaddubsw makes pairs of u8 x s8 products in INT16: with weights offset to 0..24 and codes of +-127 a pair is at most 6,096 and the four pairs of a
// block's 16 values at most 24,384, so a whole block is summed in INT16 before one vpmaddwd widens it.
#include <immintrin.h>

#include "kernels/cpu/moe/kernel.h"
#include "kernels/cpu/moe/vector_math_avx2.h"

namespace halfbyte::kernels::cpu::moe {
namespace {

constexpr int kRows = 4;  // 4 decoded vectors a block; more rows would spill

struct Codes {
  __m256i v[4];  // u8, a dword of 4 codes a lane, in the order of the records
};

inline Codes Decode(const std::byte* block) {
  const __m256i table = _mm256_broadcastsi128_si256(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
  const __m256i nibble = _mm256_set1_epi8(15);
  const __m256i a = _mm256_load_si256(reinterpret_cast<const __m256i*>(block)), b = _mm256_load_si256(reinterpret_cast<const __m256i*>(block + 64));
  return {{_mm256_shuffle_epi8(table, _mm256_and_si256(a, nibble)), _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi32(a, 4), nibble)),
           _mm256_shuffle_epi8(table, _mm256_and_si256(b, nibble)), _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi32(b, 4), nibble))}};
}

struct Row {
  const std::byte* record;
  int64_t kp;
  const int32_t* dwords() const { return reinterpret_cast<const int32_t*>(record); }
  const int32_t* bias() const { return reinterpret_cast<const int32_t*>(record + BiasOffset(kp)); }
  const float* scale() const { return reinterpret_cast<const float*>(record + ScaleOffset(kp)); }
};

inline __m256 Dot(const Codes& w, const int32_t* codes, int32_t bias) {
  const __m256i p0 = _mm256_maddubs_epi16(w.v[0], _mm256_set1_epi32(codes[0])), p1 = _mm256_maddubs_epi16(w.v[1], _mm256_set1_epi32(codes[1]));
  const __m256i p2 = _mm256_maddubs_epi16(w.v[2], _mm256_set1_epi32(codes[2])), p3 = _mm256_maddubs_epi16(w.v[3], _mm256_set1_epi32(codes[3]));
  const __m256i sum = _mm256_add_epi16(_mm256_add_epi16(p0, p1), _mm256_add_epi16(p2, p3));
  return _mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_madd_epi16(sum, _mm256_set1_epi16(1)), _mm256_set1_epi32(bias)));
}

inline const std::byte* BlockCodes(const std::byte* tile, int64_t b) { return tile + b / 4 * Nvfp4GroupBytes() + b % 4 * 128; }
inline __m256 BlockScale(const std::byte* tile, int64_t b, int half) { return E4m3Scaled8(tile + b / 4 * Nvfp4GroupBytes() + 512 + b % 4 * kTile + half * 8); }

template <int R>
void Int8Block(const std::byte* tile, int64_t k, const std::byte* const* rows, float* sums) {
  for (int half = 0; half < 2; ++half) {
    __m256 acc[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) acc[r] = _mm256_setzero_ps();
    const int64_t blocks = k / kG;
    for (int64_t b = 0; b < blocks; b += 2) {
      const int64_t next = b + 1 < blocks ? b + 1 : b;  // see the AVX-512 file
      __m256 t[R];
      {
        const Codes w = Decode(BlockCodes(tile, b) + half * 32);
        const __m256 s = BlockScale(tile, b, half);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) t[r] = _mm256_mul_ps(Dot(w, Row{rows[r], k}.dwords() + b * 4, Row{rows[r], k}.bias()[b]), s);
      }
      const Codes w = Decode(BlockCodes(tile, next) + half * 32);
      const __m256 s = next == b ? _mm256_setzero_ps() : BlockScale(tile, next, half);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        t[r] = _mm256_fmadd_ps(Dot(w, Row{rows[r], k}.dwords() + next * 4, Row{rows[r], k}.bias()[next]), s, t[r]);
        acc[r] = _mm256_fmadd_ps(t[r], _mm256_set1_ps(Row{rows[r], k}.scale()[b / 2]), acc[r]);
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) _mm256_storeu_ps(sums + r * kPair + half * 8, _mm256_mul_ps(acc[r], _mm256_set1_ps(256.0f)));
  }
}

template <int R>
void Nvfp4Block(const std::byte* tile, int64_t k, const std::byte* const* rows, float* sums) {
  for (int half = 0; half < 2; ++half) {
    __m256 acc[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) acc[r] = _mm256_setzero_ps();
    for (int64_t b = 0; b < k / kG; ++b) {
      const Codes w = Decode(BlockCodes(tile, b) + half * 32);
      const __m256 s = BlockScale(tile, b, half);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const Row row{rows[r], k};
        const __m256 f = _mm256_mul_ps(Dot(w, row.dwords() + b * 4, row.bias()[b]), _mm256_set1_ps(row.scale()[b]));
        acc[r] = _mm256_fmadd_ps(f, s, acc[r]);
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) _mm256_storeu_ps(sums + r * kPair + half * 8, _mm256_mul_ps(acc[r], _mm256_set1_ps(256.0f)));
  }
}

using BlockFn = void (*)(const std::byte*, int64_t, const std::byte* const*, float*);
constexpr BlockFn kInt8Blocks[kRows + 1] = {nullptr, Int8Block<1>, Int8Block<2>, Int8Block<3>, Int8Block<4>};
constexpr BlockFn kNvfp4Blocks[kRows + 1] = {nullptr, Nvfp4Block<1>, Nvfp4Block<2>, Nvfp4Block<3>, Nvfp4Block<4>};

void Gemm(const GemmCall& c, const BlockFn* blocks) {
  for (int64_t r = 0; r < c.m; r += kRows) {
    const int64_t n = c.m - r < kRows ? c.m - r : kRows;
    for (int t = 0; t < 2; ++t) blocks[n](c.w[t], c.k, c.rows + r, c.sums + r * kPair + t * kTile);
  }
}
void GemmInt8(const GemmCall& c) { Gemm(c, kInt8Blocks); }
void GemmNvfp4(const GemmCall& c) { Gemm(c, kNvfp4Blocks); }

constexpr MoeKernel kKernels[] = {
    {"moe_gemm_nvfp4_int8_avx2", Isa::kAvx2, WeightKind::kNvfp4, RowFormat::kInt8, nullptr, 0, GemmInt8, 4, 4, false},
    {"moe_gemm_nvfp4_nvfp4_avx2", Isa::kAvx2, WeightKind::kNvfp4, RowFormat::kNvfp4, nullptr, 0, GemmNvfp4, 4, 4, false},
};

}  // namespace

MoeKernelList MoeKernelsInt8Avx2() { return {kKernels, sizeof kKernels / sizeof kKernels[0]}; }

}  // namespace halfbyte::kernels::cpu::moe
