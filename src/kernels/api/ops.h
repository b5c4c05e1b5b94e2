// The operands of the coarse operations that a model's layer is made of.
//
// Dimension letters: T rows of the batch, D hidden, N out, K in, E experts, k experts a token, H / KVH heads, HD head dim, F expert width, V vocabulary.
// Rounding points are dtypes: an op whose output is BF16 rounds (nearest even) as it writes, one whose output is F32 does not. Accumulators are
// FP32 everywhere, or better.
//
// Row classes (design section 5): rows [0, prompt_rows) of a batch are prompt rows, the rest generated ones. Each op may treat the
// classes differently, but within a class the order of summation depends on the inner length and on the position only: never on
// the number of rows, on neighbours or on threads.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/api/kv_cache.h"
#include "kernels/api/weights.h"

namespace halfbyte::kernels {

// One sequence's rows in a batch: `rows` consecutive rows from `first_row`, at absolute positions first_position ...
// K and V of all earlier positions are in its blocks already.
struct SequenceRows {
  int64_t first_row = 0;
  int64_t rows = 0;
  int64_t first_position = 0;
  const int32_t* blocks = nullptr;  // block numbers, enough for first_position + rows tokens
  int32_t slot = -1;                // the sequence's slot in layers with a fixed-size state; -1 where the model has none
};

// The rows of one step. Prompt sequences come first.
struct Batch {
  int64_t rows = 0;         // T
  int64_t prompt_rows = 0;  // the class of a row: below, prompt; from here on, generated
  std::span<const SequenceRows> sequences;
};

// out[t] = table[tokens[t]]; F32 [T, D]
struct EmbedOp {
  const EmbeddingWeight* table = nullptr;
  std::span<const int32_t> tokens;
  MutableMatrix out;
};

// out = w * x / sqrt(mean(x^2) + eps), or (1 + w) * ... where plus_one (Qwen3-Next).  x F32 [T, D] -> BF16 or F32.
struct RmsNormOp {
  Matrix x;
  const float* weight = nullptr;  // [D]
  float eps = 0;
  bool plus_one = false;
  MutableMatrix out;
};

// out = x W^T + bias, or out += ... ; several matrices may share one x (q, k, v; gate, up).  x BF16 or F32 [T, K], out F32 [T, N].
// Where a weight has an input_scale, x is quantized with it first (in FP32, from x as it is given) and the product is multiplied by it.
struct LinearPart {
  const LinearWeight* weight = nullptr;
  const float* bias = nullptr;  // [N] or null
  MutableMatrix out;
  bool accumulate = false;
};
struct LinearOp {
  Matrix x;
  int64_t prompt_rows = 0;
  std::span<const LinearPart> parts;
};

enum class QkNorm : uint8_t {
  kNone,
  kPerHead,  // one [HD] weight for all heads
  kFlat,     // over the whole projection [H*HD] / [KVH*HD] (OLMoE, MiniMax-M2)
};

// Rotary embedding, half-split pairs (i, i + dims/2); dims beyond `dims` pass through. angle = position * inv_freq[i],
// rounded to FP32 as in transformers; cos and sin are multiplied by `scale` (YaRN).
struct RopeSpec {
  int64_t dims = 0;                 // 0: no RoPE
  const float* inv_freq = nullptr;  // [dims/2]
  float scale = 1.0f;
};

// Norm and rotate q and k, then append k and v to the cache.
//   q F32 [T, H*HD] -> q_out BF16 or F32;  k, v F32 [T, KVH*HD] -> cache (in its dtype).
// In the rounded form (q_out BF16) the norm's output is rounded before RoPE, q and k after it, and v; the cache's dtype comes after that.
struct QkvOp {
  Batch batch;
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  Matrix q, k, v;
  float clip = 0;  // > 0: clamp q, k, v to +-clip, after the norm (OLMoE's clip_qkv)
  QkNorm norm = QkNorm::kNone;
  const float* q_norm = nullptr;
  const float* k_norm = nullptr;
  float eps = 0;
  bool plus_one = false;
  RopeSpec rope;
  MutableMatrix q_out;
  KvLayer kv;
};

// out[t, h] = softmax(q . K * scale) V over the cached positions up to t's own; K and V are read as the cache stores them, those of the row's own
// chunk included. Query head h uses KV head h / (H / KVH).  q BF16 or F32 [T, H*HD] -> out BF16 or F32.
// Bytes behind a sequence's last position may hold anything, NaN included (a block's former owner may have broken down): they must not count.
// Blocked by absolute key position in every class. window > 0: key j is visible to query i iff i - window < j <= i.
struct AttentionOp {
  Batch batch;
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  float scale = 0;
  int64_t window = 0;
  const float* sinks = nullptr;  // [H], an extra logit in each head's denominator; null: none
  Matrix q;
  KvLayer kv;
  MutableMatrix out;
  bool exact = false;  // softmax weights must not be rounded for the P.V product
};

// out = silu(gate) * up.  F32 [T, F] -> BF16 or F32.
struct SiluMulOp {
  Matrix gate, up;
  MutableMatrix out;
};

enum class RouterScore : uint8_t { kSoftmax };  // later: sigmoid with bias and groups, softmax after top-k

// The k best experts of a row from its router logits; ties go to the lowest id.  logits F32 [T, E] -> ids [T, k] (best first), weights F32 [T, k].
struct RouteOp {
  Matrix logits;
  RouterScore score = RouterScore::kSoftmax;
  int64_t top_k = 0;
  bool normalize = false;  // divide the k weights by their sum
  float scaling = 1.0f;    // multiplies the weights at the end
  std::span<int32_t> ids;
  std::span<float> weights;
};

// Sees what enters the down matrices of a layer's experts (measuring activation scales). Called between two steps of the op, on its thread; the rows are
// host memory, so only `reference` and `cpu` call it.
class MoeObserver {
 public:
  virtual ~MoeObserver() = default;
  // h F32 [rows, F], before it is quantized. An expert may come twice an op: prompt rows and generated rows.
  virtual void Hidden(int64_t expert, const Matrix& h) = 0;
};

// out[t] += sum over slots s = 0..k-1 (in this order) of weights[t, s] * expert(ids[t, s], x[t]).
//   x BF16 or F32 [T, D], out F32 [T, D].  h = silu(gate) * up in FP32, then rounded or quantized as experts->spec() says.
struct MoeOp {
  Matrix x;
  int64_t prompt_rows = 0;
  const ExpertsWeight* experts = nullptr;
  int64_t top_k = 0;
  std::span<const int32_t> ids;
  std::span<const float> weights;
  MutableMatrix out;
  MoeObserver* observer = nullptr;  // null: nobody looks
};

// out[t] += y[t] * sigmoid(gate[t]) (gate [T, 1]), or += y[t] without one.  F32.
struct AddGatedOp {
  Matrix y;
  Matrix gate;  // data == null: no gate
  MutableMatrix out;
};

// out[i] = x[rows[i]].  Any dtype, both the same.
struct GatherRowsOp {
  Matrix x;
  std::span<const int64_t> rows;
  MutableMatrix out;
};

}  // namespace halfbyte::kernels
