// NVFP4 weights by INT8 rows (w4a8) and by NVFP4 rows (W4A4) in integer dot products, exact: 2 x E2M1 is an integer in [-12, 12].
//
// Weights are made unsigned by adding 12 in the lookup table, because vpdpbusd wants u8 x s8; the accumulator of a block starts at
// -12 * (sum of the row's codes), which the row's record holds, so the correction costs a broadcast load.
// vpermb looks at 6 bits of an index: with the 16 entries repeated four times the two bits above a nibble do not matter, and neither
// code vector has to be masked.
//
// Operations a block of 16 inner values, tile of 16 columns and row: 4 vpdpbusd, 1 convert, 1.5 (w4a8) or 2 (W4A4) multiplies and FMAs. So at
// two thirds of the vpdpbusd peak the straight form ends; decoding (2 shifts, 4 permutes, 3 for the scale) is shared by 12 rows.
//
// Sums of a row: w4a8: acc = fma(fma(f1, ws1, f0 * ws0), s, acc) for each group of 32; W4A4: acc = fma(f * s, ws, acc) for each block. f is an exact
// integer, f * ws and f * s * ws are exact (below 2^24 in units of their last place), so only the sums round.
#include <immintrin.h>

#include "kernels/cpu/moe/kernel.h"
#include "kernels/cpu/moe/vector_math_avx512.h"

namespace halfbyte::kernels::cpu::moe {
namespace {

constexpr int kRows = 12;

struct Codes {
  __m512i v[4];  // u8, a dword of 4 codes a lane, in the order of the records
};

inline __m512i OffsetTable() {
  return _mm512_broadcast_i32x4(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
}

inline Codes Decode(const std::byte* block, __m512i table) {
  const __m512i a = _mm512_load_si512(block), b = _mm512_load_si512(block + 64);
  return {{_mm512_permutexvar_epi8(a, table), _mm512_permutexvar_epi8(_mm512_srli_epi32(a, 4), table), _mm512_permutexvar_epi8(b, table),
           _mm512_permutexvar_epi8(_mm512_srli_epi32(b, 4), table)}};
}

struct Row {
  const std::byte* record;
  int64_t kp;
  const int32_t* dwords() const { return reinterpret_cast<const int32_t*>(record); }
  const int32_t* bias() const { return reinterpret_cast<const int32_t*>(record + BiasOffset(kp)); }
  const float* scale() const { return reinterpret_cast<const float*>(record + ScaleOffset(kp)); }
};

// The integer dot products of block b with 16 columns, as FP32.
inline __m512 Dot(const Codes& w, const int32_t* codes, int32_t bias) {
  __m512i d = _mm512_set1_epi32(bias);
  d = _mm512_dpbusd_epi32(d, w.v[0], _mm512_set1_epi32(codes[0]));
  d = _mm512_dpbusd_epi32(d, w.v[1], _mm512_set1_epi32(codes[1]));
  d = _mm512_dpbusd_epi32(d, w.v[2], _mm512_set1_epi32(codes[2]));
  d = _mm512_dpbusd_epi32(d, w.v[3], _mm512_set1_epi32(codes[3]));
  return _mm512_cvtepi32_ps(d);
}

inline const std::byte* BlockCodes(const std::byte* tile, int64_t b) { return tile + b / 4 * Nvfp4GroupBytes() + b % 4 * 128; }
inline __m512 BlockScale(const std::byte* tile, int64_t b) { return E4m3Scaled(tile + b / 4 * Nvfp4GroupBytes() + 512 + b % 4 * kTile); }

template <int R>
void Int8Block(const std::byte* tile, int64_t k, const std::byte* const* rows, float* sums) {
  const __m512i table = OffsetTable();
  Row row[R];
  __m512 acc[R];
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
    row[r] = {rows[r], k};
    acc[r] = _mm512_setzero_ps();
  }
  const int64_t blocks = k / kG;
  for (int64_t b = 0; b < blocks; b += 2) {
    // The last group of 32 may have one block. Its partner is taken as a block with scale zero, in the same instructions.
    const int64_t next = b + 1 < blocks ? b + 1 : b;
    const Codes w0 = Decode(BlockCodes(tile, b), table), w1 = Decode(BlockCodes(tile, next), table);
    const __m512 s0 = BlockScale(tile, b), s1 = next == b ? _mm512_setzero_ps() : BlockScale(tile, next);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      const __m512 f0 = Dot(w0, row[r].dwords() + b * 4, row[r].bias()[b]);
      const __m512 f1 = Dot(w1, row[r].dwords() + next * 4, row[r].bias()[next]);
      const __m512 t = _mm512_fmadd_ps(f1, s1, _mm512_mul_ps(f0, s0));
      acc[r] = _mm512_fmadd_ps(t, _mm512_set1_ps(row[r].scale()[b / 2]), acc[r]);
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) _mm512_storeu_ps(sums + r * kPair, _mm512_mul_ps(acc[r], _mm512_set1_ps(256.0f)));
}

template <int R>
void Nvfp4Block(const std::byte* tile, int64_t k, const std::byte* const* rows, float* sums) {
  const __m512i table = OffsetTable();
  Row row[R];
  __m512 acc[R];
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
    row[r] = {rows[r], k};
    acc[r] = _mm512_setzero_ps();
  }
  for (int64_t b = 0; b < k / kG; ++b) {
    const Codes w = Decode(BlockCodes(tile, b), table);
    const __m512 s = BlockScale(tile, b);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      const __m512 f = _mm512_mul_ps(Dot(w, row[r].dwords() + b * 4, row[r].bias()[b]), _mm512_set1_ps(row[r].scale()[b]));
      acc[r] = _mm512_fmadd_ps(f, s, acc[r]);
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) _mm512_storeu_ps(sums + r * kPair, _mm512_mul_ps(acc[r], _mm512_set1_ps(256.0f)));
}

using BlockFn = void (*)(const std::byte*, int64_t, const std::byte* const*, float*);
constexpr BlockFn kInt8Blocks[kRows + 1] = {nullptr,      Int8Block<1>, Int8Block<2>, Int8Block<3>,  Int8Block<4>,  Int8Block<5>, Int8Block<6>,
                                            Int8Block<7>, Int8Block<8>, Int8Block<9>, Int8Block<10>, Int8Block<11>, Int8Block<12>};
constexpr BlockFn kNvfp4Blocks[kRows + 1] = {nullptr,       Nvfp4Block<1>, Nvfp4Block<2>, Nvfp4Block<3>,  Nvfp4Block<4>,  Nvfp4Block<5>, Nvfp4Block<6>,
                                             Nvfp4Block<7>, Nvfp4Block<8>, Nvfp4Block<9>, Nvfp4Block<10>, Nvfp4Block<11>, Nvfp4Block<12>};

void Gemm(const GemmCall& c, const BlockFn* blocks) {
  for (int64_t r = 0; r < c.m; r += kRows) {
    const int64_t n = c.m - r < kRows ? c.m - r : kRows;
    for (int t = 0; t < 2; ++t) blocks[n](c.w[t], c.k, c.rows + r, c.sums + r * kPair + t * kTile);
  }
}
void GemmInt8(const GemmCall& c) { Gemm(c, kInt8Blocks); }
void GemmNvfp4(const GemmCall& c) { Gemm(c, kNvfp4Blocks); }

constexpr MoeKernel kKernels[] = {
    {"moe_gemm_nvfp4_int8_avx512vnni", Isa::kAvx512Vnni, WeightKind::kNvfp4, RowFormat::kInt8, nullptr, 0, GemmInt8, 6, 6, false},
    {"moe_gemm_nvfp4_nvfp4_avx512vnni", Isa::kAvx512Vnni, WeightKind::kNvfp4, RowFormat::kNvfp4, nullptr, 0, GemmNvfp4, 6, 6, false},
};

}  // namespace

MoeKernelList MoeKernelsAvx512Vnni() { return {kKernels, sizeof kKernels / sizeof kKernels[0]}; }

}  // namespace halfbyte::kernels::cpu::moe
