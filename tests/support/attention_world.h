// Sequences with a paged cache on some backend, stepped in any batches and any chunks: the stage for Qkv and Attention.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "kernels/api/backend.h"
#include "support/device_data.h"

namespace halfbyte::test {

struct AttentionShape {
  int64_t heads = 4, kv_heads = 2, head_dim = 32, block_tokens = 16;
  int64_t window = 0, rope_dims = 32;
  kernels::QkNorm norm = kernels::QkNorm::kNone;
  float clip = 0;
  bool sinks = false, plus_one = false;
  tensor::DType kv = tensor::DType::kF32;   // of the cache
  tensor::DType out = tensor::DType::kF32;  // of q_out and of the result
  bool exact = true;
  std::string ToString() const;
};

// Rows [first, first + rows) of a sequence.
struct Chunk {
  int sequence = 0;
  int64_t first = 0, rows = 0;
};

// Results by (sequence, position).
struct AttentionResult {
  std::map<std::pair<int, int64_t>, std::vector<float>> q;    // [H * HD], as Qkv made it
  std::map<std::pair<int, int64_t>, std::vector<float>> out;  // [H * HD]
};

class AttentionWorld {
 public:
  // Room for `sequences` of `length` tokens. Inputs are the same for every world of the same shape: they depend on sequence and position
  // alone. scattered: the blocks of a sequence lie all over the pool, among blocks full of NaN; otherwise one after the other.
  AttentionWorld(kernels::Backend& backend, const AttentionShape& shape, int sequences, int64_t length, bool scattered);

  // One batch: Qkv, then Attention. The first prompt_chunks chunks are prompt rows. Adds to the result.
  void Step(const std::vector<Chunk>& chunks, size_t prompt_chunks);
  // A prompt in chunks of the given sizes.
  void Prefill(int sequence, const std::vector<int64_t>& sizes);

  const AttentionResult& result() const { return result_; }
  std::vector<float> Out(int sequence, int64_t position) const { return result_.out.at({sequence, position}); }

 private:
  std::vector<float> Input(char which, int sequence, int64_t position, int64_t cols) const;

  kernels::Backend& backend_;
  AttentionShape shape_;
  std::vector<std::vector<int32_t>> blocks_;
  tensor::Buffer pool_;
  kernels::KvLayer kv_;
  DeviceArray<float> inv_freq_, q_norm_, k_norm_, sinks_;
  AttentionResult result_;
};

}  // namespace halfbyte::test
