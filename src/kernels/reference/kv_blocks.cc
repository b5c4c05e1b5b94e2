#include "kernels/reference/kv_blocks.h"

#include "base/check.h"
#include "numerics/bf16.h"
#include "numerics/e4m3.h"

namespace halfbyte::kernels::reference {
namespace {

using tensor::DType;

// Address of [position, head, 0]; `sequence` must own the block.
std::byte* Slot(const KvLayer& kv, const SequenceRows& sequence, int64_t position, KvPart part, int64_t head) {
  const KvSpec& s = kv.spec;
  const int64_t block = sequence.blocks[position / s.block_tokens];
  HB_CHECK(0 <= block && block < kv.blocks, "block ", block, " of ", kv.blocks);
  int64_t row = position % s.block_tokens + (part == KvPart::kV ? s.block_tokens : 0);
  const int64_t element = (row * s.kv_heads + head) * s.head_dim;
  return kv.data + block * KvBlockBytes(s) + element * tensor::DTypeBits(s.dtype) / 8;
}

}  // namespace

void StoreKv(const KvLayer& kv, const SequenceRows& sequence, int64_t position, KvPart part, int64_t head, const float* values) {
  std::byte* slot = Slot(kv, sequence, position, part, head);
  const float scale = part == KvPart::kK ? kv.k_scale : kv.v_scale;
  for (int64_t i = 0; i < kv.spec.head_dim; ++i) switch (kv.spec.dtype) {
      case DType::kF32: reinterpret_cast<float*>(slot)[i] = values[i]; break;
      case DType::kBF16: reinterpret_cast<uint16_t*>(slot)[i] = numerics::FloatToBf16(values[i]); break;
      case DType::kF8E4M3: reinterpret_cast<uint8_t*>(slot)[i] = numerics::FloatToE4m3(values[i] / scale); break;
      default: HB_CHECK(false, "a KV cache of ", tensor::DTypeName(kv.spec.dtype));
    }
}

void LoadKv(const KvLayer& kv, const SequenceRows& sequence, int64_t position, KvPart part, int64_t head, double* out) {
  const std::byte* slot = Slot(kv, sequence, position, part, head);
  const float scale = part == KvPart::kK ? kv.k_scale : kv.v_scale;
  for (int64_t i = 0; i < kv.spec.head_dim; ++i) switch (kv.spec.dtype) {
      case DType::kF32: out[i] = reinterpret_cast<const float*>(slot)[i]; break;
      case DType::kBF16: out[i] = numerics::Bf16ToFloat(reinterpret_cast<const uint16_t*>(slot)[i]); break;
      case DType::kF8E4M3: out[i] = numerics::E4m3ToFloat(reinterpret_cast<const uint8_t*>(slot)[i]) * scale; break;
      default: HB_CHECK(false, "a KV cache of ", tensor::DTypeName(kv.spec.dtype));
    }
}

}  // namespace halfbyte::kernels::reference
