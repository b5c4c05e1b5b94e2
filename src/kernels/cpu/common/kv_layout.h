// The inside of a KV block on the `cpu` backend. For each KV head, first K, then V of the block's tokens:
//   K   [token/16][hd/2][16][2]: 16 tokens side by side, pairs along the head's width. A panel as in layout.h whose "rows" are
//       tokens, so that q K^T is a dense product
//   V   [token/2][hd][2]: pairs of tokens side by side for each column, so that P V is one too
// with elements of 2 bytes (BF16) or 1 (FP8). F32: K [token/16][hd][16], V [token][hd].
#pragma once

#include "kernels/api/kv_cache.h"

namespace halfbyte::kernels::cpu {

// Element indices within one head's part of a block; the part has 2 * block_tokens * head_dim elements. Internal linkage: kernel
// files include this.
namespace {

inline int64_t KIndex(int64_t hd, bool f32, int64_t token, int64_t i) {
  int64_t group = (token / 16) * 16 * hd, t = token % 16;
  return f32 ? group + i * 16 + t : group + (i / 2) * 32 + t * 2 + i % 2;
}
inline int64_t VIndex(int64_t hd, int64_t block_tokens, bool f32, int64_t token, int64_t i) {
  int64_t base = block_tokens * hd;
  return f32 ? base + token * hd + i : base + (token / 2) * 2 * hd + i * 2 + token % 2;
}
inline int64_t KvElementBytes(tensor::DType dtype) {
  return dtype == tensor::DType::kF32 ? 4 : dtype == tensor::DType::kBF16 ? 2 : 1;
}
inline std::byte* HeadPart(const KvLayer& kv, int64_t block, int64_t head) {
  int64_t part = 2 * kv.spec.block_tokens * kv.spec.head_dim * KvElementBytes(kv.spec.dtype);
  return kv.data + (block * kv.spec.kv_heads + head) * part;
}

}  // namespace
}  // namespace halfbyte::kernels::cpu
