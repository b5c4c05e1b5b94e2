// RMS norms, QK norm, rotary embedding, and appending K and V to the cache.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "kernels/reference/kv_blocks.h"
#include "kernels/reference/ops.h"
#include "kernels/reference/rows.h"
#include "numerics/bf16.h"
#include "platform/parallel.h"

namespace halfbyte::kernels::reference {
namespace {

// x = w * x / sqrt(mean(x^2) + eps), in FP64
void Normalize(std::span<double> x, const float* weight, float eps, bool plus_one) {
  const double mean = Dot(x.data(), x.data(), static_cast<int64_t>(x.size())) / static_cast<double>(x.size());
  const double factor = 1.0 / std::sqrt(mean + eps);
  for (size_t i = 0; i < x.size(); ++i) x[i] *= factor * (plus_one ? 1.0 + weight[i] : weight[i]);
}

// FP32, and from there BF16 in the rounded form: a value as an op with FP32 accumulators hands it on.
void Round(std::span<double> x, bool to_bf16) {
  for (double& v : x) {
    v = static_cast<float>(v);
    if (to_bf16) v = numerics::RoundToBf16(static_cast<float>(v));
  }
}

// cos and sin of one position, [dims/2] each. The angle is one FP32 product and cos, sin are FP32 values, as transformers and the
// serving engines have them: at position 100,000 the FP32 rounding of the angle is what the model was trained with.
struct Rotation {
  std::vector<double> cos, sin;
  Rotation(const RopeSpec& rope, int64_t position) {
    for (int64_t i = 0; i < rope.dims / 2; ++i) {
      const float angle = static_cast<float>(position) * rope.inv_freq[i];
      cos.push_back(static_cast<float>(std::cos(static_cast<double>(angle))) * rope.scale);
      sin.push_back(static_cast<float>(std::sin(static_cast<double>(angle))) * rope.scale);
    }
  }
  void Apply(double* head) const {
    for (size_t i = 0; i < cos.size(); ++i) {
      const double a = head[i], b = head[i + cos.size()];
      head[i] = a * cos[i] - b * sin[i];
      head[i + cos.size()] = b * cos[i] + a * sin[i];
    }
  }
};

// Norm, clip, round, rotate, round: one row of q or k, x FP64 [heads * HD].
void NormAndRotate(const QkvOp& op, const float* norm, const Rotation& rotation, std::span<double> x) {
  const bool rounded = op.q_out.dtype == DType::kBF16;
  const auto hd = static_cast<size_t>(op.head_dim);
  if (op.norm == QkNorm::kFlat) Normalize(x, norm, op.eps, op.plus_one);
  if (op.norm == QkNorm::kPerHead)
    for (size_t h = 0; h < x.size(); h += hd) Normalize(x.subspan(h, hd), norm, op.eps, op.plus_one);
  if (op.clip > 0)
    for (double& v : x) v = std::clamp<double>(v, -op.clip, op.clip);
  if (op.norm != QkNorm::kNone) Round(x, rounded);
  if (op.rope.dims > 0)
    for (size_t h = 0; h < x.size(); h += hd) rotation.Apply(x.data() + h);
  Round(x, rounded);
}

void Append(const QkvOp& op, const SequenceRows& sequence, int64_t position, KvPart part, std::span<const double> x) {
  const std::vector<float> values(x.begin(), x.end());
  for (int64_t h = 0; h < op.kv_heads; ++h) StoreKv(op.kv, sequence, position, part, h, values.data() + h * op.head_dim);
}

}  // namespace

void RunRmsNorm(const RmsNormOp& op) {
  HB_CHECK(op.x.rows == op.out.rows && op.x.cols == op.out.cols);
  platform::ParallelFor(op.x.rows, 8, [&](int64_t begin, int64_t end) {
    std::vector<double> x(static_cast<size_t>(op.x.cols));
    for (int64_t t = begin; t < end; ++t) {
      LoadRow(op.x, t, x.data());
      Normalize(x, op.weight, op.eps, op.plus_one);
      StoreRow(x, op.out, t);
    }
  });
}

void RunQkv(const QkvOp& op) {
  HB_CHECK(op.q.cols == op.heads * op.head_dim && op.k.cols == op.kv_heads * op.head_dim && op.v.cols == op.k.cols);
  HB_CHECK(op.q_out.cols == op.q.cols && op.kv.spec.kv_heads == op.kv_heads && op.kv.spec.head_dim == op.head_dim);
  const bool rounded = op.q_out.dtype == DType::kBF16;
  for (const SequenceRows& sequence : op.batch.sequences) {
    platform::ParallelFor(sequence.rows, 4, [&](int64_t begin, int64_t end) {
      std::vector<double> q(static_cast<size_t>(op.q.cols)), kv(static_cast<size_t>(op.k.cols));
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = sequence.first_row + i, position = sequence.first_position + i;
        const Rotation rotation(op.rope, position);
        LoadRow(op.q, row, q.data());
        NormAndRotate(op, op.q_norm, rotation, q);
        StoreRow(q, op.q_out, row);
        LoadRow(op.k, row, kv.data());
        NormAndRotate(op, op.k_norm, rotation, kv);
        Append(op, sequence, position, KvPart::kK, kv);
        LoadRow(op.v, row, kv.data());
        if (op.clip > 0)
          for (double& v : kv) v = std::clamp<double>(v, -op.clip, op.clip);
        Round(kv, rounded);
        Append(op, sequence, position, KvPart::kV, kv);
      }
    });
  }
}

}  // namespace halfbyte::kernels::reference
