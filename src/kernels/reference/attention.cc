// Attention over the paged cache. K and V of one head are read once for all rows and query heads that use them; each row then
// walks its own visible positions in order, so its result depends on nothing but the position and the cache's content.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "kernels/reference/kv_blocks.h"
#include "kernels/reference/ops.h"
#include "kernels/reference/rows.h"
#include "platform/parallel.h"

namespace halfbyte::kernels::reference {
namespace {

// K and V FP64 [positions, HD] of one KV head, from the first position that any row of the sequence can see.
struct HeadCache {
  int64_t first = 0, head_dim = 0;
  std::vector<double> k, v;
  const double* K(int64_t position) const { return k.data() + (position - first) * head_dim; }
  const double* V(int64_t position) const { return v.data() + (position - first) * head_dim; }
};

int64_t FirstVisible(const AttentionOp& op, int64_t position) {
  return op.window > 0 ? std::max<int64_t>(0, position - op.window + 1) : 0;
}

HeadCache ReadHead(const AttentionOp& op, const SequenceRows& sequence, int64_t kv_head) {
  HeadCache cache{.first = FirstVisible(op, sequence.first_position), .head_dim = op.head_dim};
  const int64_t end = sequence.first_position + sequence.rows;
  cache.k.resize(static_cast<size_t>((end - cache.first) * op.head_dim));
  cache.v.resize(cache.k.size());
  for (int64_t p = cache.first; p < end; ++p) {
    LoadKv(op.kv, sequence, p, KvPart::kK, kv_head, cache.k.data() + (p - cache.first) * op.head_dim);
    LoadKv(op.kv, sequence, p, KvPart::kV, kv_head, cache.v.data() + (p - cache.first) * op.head_dim);
  }
  return cache;
}

// out FP64 [HD] for one row and query head; `sink` is null or an extra logit in the denominator.
void Attend(const AttentionOp& op, const HeadCache& cache, int64_t position, const double* q, const float* sink, std::span<double> out) {
  const int64_t first = FirstVisible(op, position);
  std::vector<double> weights(static_cast<size_t>(position - first + 1));
  double largest = sink ? *sink : -INFINITY;
  for (size_t j = 0; j < weights.size(); ++j) {
    weights[j] = Dot(q, cache.K(first + static_cast<int64_t>(j)), op.head_dim) * op.scale;
    largest = std::max(largest, weights[j]);
  }
  double sum = sink ? std::exp(*sink - largest) : 0.0;
  for (double& w : weights) sum += w = std::exp(w - largest);
  std::fill(out.begin(), out.end(), 0.0);
  for (size_t j = 0; j < weights.size(); ++j) {
    const double* v = cache.V(first + static_cast<int64_t>(j));
    for (size_t i = 0; i < out.size(); ++i) out[i] += weights[j] / sum * v[i];
  }
}

}  // namespace

void RunAttention(const AttentionOp& op) {
  HB_CHECK(op.kv_heads > 0 && op.heads % op.kv_heads == 0, op.heads, " heads on ", op.kv_heads, " KV heads");
  HB_CHECK(op.q.cols == op.heads * op.head_dim && op.out.cols == op.q.cols && op.out.rows == op.q.rows);
  const int64_t group = op.heads / op.kv_heads, hd = op.head_dim;
  for (const SequenceRows& sequence : op.batch.sequences) {
    if (sequence.rows == 0) continue;
    platform::ParallelFor(op.kv_heads, 1, [&](int64_t begin, int64_t end) {
      std::vector<double> q(static_cast<size_t>(hd)), out(static_cast<size_t>(hd));
      for (int64_t kv_head = begin; kv_head < end; ++kv_head) {
        const HeadCache cache = ReadHead(op, sequence, kv_head);
        for (int64_t row = sequence.first_row; row < sequence.first_row + sequence.rows; ++row)
          for (int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
            // One head's columns as a matrix of their own.
            const auto column = [&](void* data, DType dtype) { return static_cast<char*>(data) + h * hd * tensor::DTypeBits(dtype) / 8; };
            LoadRow(Matrix(column(const_cast<void*>(op.q.data), op.q.dtype), op.q.dtype, op.q.rows, hd, op.q.ld), row, q.data());
            Attend(op, cache, sequence.first_position + row - sequence.first_row, q.data(), op.sinks ? op.sinks + h : nullptr, out);
            StoreRow(out, MutableMatrix(column(op.out.data, op.out.dtype), op.out.dtype, op.out.rows, hd, op.out.ld), row);
          }
      }
    });
  }
}

}  // namespace halfbyte::kernels::reference
