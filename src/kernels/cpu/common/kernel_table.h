// What an instruction set's folder exports: tables of kernels by name. The backend picks the last available entry that fits,
// unless the user names one.
//
// A kernel works on a range of its output and knows no threads; the drivers (linear.cc, attention.cc, rows.cc) cut the work.
#pragma once

#include <span>

#include "kernels/api/kv_cache.h"
#include "kernels/cpu/common/layout.h"
#include "platform/cpu_features.h"

namespace halfbyte::kernels::cpu {

using Available = bool (*)(const platform::CpuFeatures&);

enum class RowType : uint8_t { kF32, kBf16, kBf16Steps };  // packed as layout.h says

// out[r, n] (+)= sum_k x[r, k] W[n, k] (+ bias[n]) for the rows of x tiles [tile_begin, tile_end) and the panels [panel_begin,
// panel_end).
struct LinearCall {
  LinearView w;
  const void* x = nullptr;  // packed as layout.h says; the tiles' rows are consecutive rows of `out`
  int64_t rows = 0;         // of all tiles
  int64_t x_depth = 0;      // k of the packed x; >= w.k_padded
  float* out = nullptr;     // row 0
  int64_t out_ld = 0;
  const float* bias = nullptr;
  bool accumulate = false;
  std::byte* scratch = nullptr;  // the kernel's scratch_bytes, 64-byte aligned
};
using LinearRun = void (*)(const LinearCall&, int64_t panel_begin, int64_t panel_end, int64_t tile_begin, int64_t tile_end);

struct LinearKernel {
  const char* name;  // linear_<weight>_<act>_<machine>
  const char* machine;
  Available available;
  LinearKind kind;
  RowType act;  // the form of x; an F32 kernel takes BF16 rows as well (widened, which is exact)
  int tile_rows;
  // One function for each class of rows; equal where the order of summation is the same. run_generated is null in kernels for prompt rows alone.
  LinearRun run_prompt, run_generated;
  int64_t (*scratch_bytes)(const LinearView&);  // null: none
  bool bf16_dot;                                // built on vdpbf16ps: a default only where that runs at full rate
};

// Row-wise pieces. d is the width of a row.
struct RowKernels {
  const char* name;  // rows_f32_f32_<machine>
  const char* machine;
  Available available;
  // out = (plus_one ? 1 + w : w) * x / sqrt(mean(x^2) + eps); out F32 or BF16. w == null: no weight.
  void (*rms_norm)(const float* x, const float* w, int64_t d, float eps, bool plus_one, void* out, bool out_bf16);
  // out = silu(gate) * up
  void (*silu_mul)(const float* gate, const float* up, int64_t d, void* out, bool out_bf16);
  // x[i], x[i + half] <- rotated by (cos[i], sin[i]) for i < half
  void (*rope)(float* x, const float* cos, const float* sin, int64_t half);
  void (*clamp)(float* x, int64_t d, float limit);
  void (*to_bf16)(const float* x, int64_t d, uint16_t* out);
  void (*from_bf16)(const uint16_t* x, int64_t d, float* out);
  void (*round_bf16)(float* x, int64_t d);                                 // in place
  void (*add_scaled)(const float* y, float scale, int64_t d, float* out);  // out += scale * y
  // x [rows][k] (rows apart by ld) -> a packed tile of `rows` rows, k padded to `depth` with zeros. Source and packed form may be
  // BF16 or F32.
  void (*pack_f32)(const void* x, bool x_bf16, int64_t rows, int64_t k, int64_t ld, int64_t depth, float* out);
  void (*pack_bf16)(const void* x, bool x_bf16, int64_t rows, int64_t k, int64_t ld, int64_t depth, uint32_t* out);
};

// Attention of `rows` consecutive rows of one sequence and the `group` query heads that share a KV head, over the keys
// [key_begin, key_end). Query vector v = row * group + head. Results are partial: for each v the maximum m of the scaled logits,
// the sum l of exp(logit - m), and o = sum of exp(logit - m) * value (not yet divided). key_begin is a multiple of
// kAttentionSplit.
struct AttentionCall {
  KvLayer kv;
  const int32_t* blocks = nullptr;
  int64_t kv_head = 0;
  const void* q = nullptr;  // first row, first head of the group
  bool q_bf16 = false;
  int64_t q_ld = 0;
  int64_t rows = 0, group = 0, head_dim = 0;
  int64_t first_position = 0;  // of the first row
  float scale = 0;
  int64_t window = 0;  // 0: none
  bool exact = false;
  int64_t key_begin = 0, key_end = 0;
  int64_t keys = 0;    // that the cache holds, >= key_end: what may be fetched ahead
  float* m = nullptr;  // [rows * group]
  float* l = nullptr;
  float* o = nullptr;            // [rows * group][PaddedHeadDim]
  std::byte* scratch = nullptr;  // scratch_bytes(head_dim), 64-byte aligned
};
// Keys are folded in chunks, chunks in splits, splits in the order of position: the shape of the sum depends on absolute
// positions only, so it does not matter which splits run side by side.
inline constexpr int64_t kAttentionChunk = 128;
inline constexpr int64_t kAttentionSplit = 512;
inline constexpr int64_t PaddedHeadDim(int64_t hd) { return (hd + 15) / 16 * 16; }
inline constexpr int64_t kAttentionVectors = 96;  // most rows * group of one call

struct AttentionKernel {
  const char* name;  // attention_<kv>_<q>_<machine>
  const char* machine;
  Available available;
  bool rounded;   // may round P (and needs BF16 q, BF16 or FP8 cache): not for exact calls
  bool bf16_dot;  // see LinearKernel
  void (*partial)(const AttentionCall&);
  int64_t (*scratch_bytes)(int64_t head_dim);
  // (m, l, o) of n vectors <- fold with (m2, l2, o2)
  void (*fold)(int64_t n, int64_t hd_padded, float* m, float* l, float* o, const float* m2, const float* l2, const float* o2);
};

std::span<const LinearKernel* const> Avx2Linear();
std::span<const RowKernels* const> Avx2Rows();
std::span<const AttentionKernel* const> Avx2Attention();
std::span<const LinearKernel* const> Avx512Linear();
std::span<const RowKernels* const> Avx512Rows();
std::span<const AttentionKernel* const> Avx512Attention();
std::span<const LinearKernel* const> AmxLinear();

}  // namespace halfbyte::kernels::cpu
