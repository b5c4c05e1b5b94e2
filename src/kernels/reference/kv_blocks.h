// How this backend lays K and V out in a block, and how values are written to and read from it.
//
// A block holds K [block_tokens, KVH, HD], then V [block_tokens, KVH, HD], in the cache's dtype.
#pragma once

#include <cstdint>

#include "kernels/api/kv_cache.h"
#include "kernels/api/ops.h"

namespace halfbyte::kernels::reference {

enum class KvPart : uint8_t { kK, kV };

// Writes one head of one position: values F32 [HD]. F8_E4M3 stores e4m3(value / scale), saturating.
void StoreKv(const KvLayer& kv, const SequenceRows& sequence, int64_t position, KvPart part, int64_t head, const float* values);

// Reads one head of one position: out FP64 [HD], the value as the cache stores it (code * scale rounded to FP32 for F8_E4M3).
void LoadKv(const KvLayer& kv, const SequenceRows& sequence, int64_t position, KvPart part, int64_t head, double* out);

}  // namespace halfbyte::kernels::reference
