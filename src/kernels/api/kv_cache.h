// The paged KV cache as kernels see it: a pool of blocks a layer; a sequence owns a list of block numbers.
#pragma once

#include <cstdint>

#include "tensor/buffer.h"
#include "tensor/dtype.h"

namespace halfbyte::kernels {

struct KvSpec {
  int64_t kv_heads = 0;      // KVH
  int64_t head_dim = 0;      // HD
  int64_t block_tokens = 0;  // tokens a block holds; a multiple of 16
  tensor::DType dtype = tensor::DType::kBF16;  // F32 (exact), BF16, F8_E4M3

  friend bool operator==(const KvSpec&, const KvSpec&) = default;
};

// One layer's pool. The layout inside a block is the backend's secret; only it reads or writes the bytes.
struct KvLayer {
  KvSpec spec;
  int64_t blocks = 0;
  std::byte* data = nullptr;  // blocks * KvBlockBytes(spec)
  // Multipliers of the stored values, of F8_E4M3 only (value = code * scale); a checkpoint may have them, and other dtypes store the values themselves.
  float k_scale = 1.0f, v_scale = 1.0f;
};

// K and V of block_tokens tokens. The same for every backend, so that memory can be planned without one.
inline int64_t KvBlockBytes(const KvSpec& s) {
  return 2 * s.kv_heads * s.head_dim * s.block_tokens * tensor::DTypeBits(s.dtype) / 8;
}

}  // namespace halfbyte::kernels
