// Norm, clamp and rotate q and k; append k and v to the cache. A row is one task; it never looks at another.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/common/kv_layout.h"
#include "kernels/cpu/ops.h"
#include "numerics/bf16.h"
#include "numerics/e4m3.h"
#include "platform/parallel.h"

namespace halfbyte::kernels::cpu {
namespace {

int64_t PositionOf(const Batch& batch, int64_t row, const SequenceRows** sequence) {
  for (const SequenceRows& s : batch.sequences)
    if (row >= s.first_row && row < s.first_row + s.rows) {
      *sequence = &s;
      return s.first_position + row - s.first_row;
    }
  HB_CHECK(false, "row ", row, " belongs to no sequence");
  return 0;
}

class Row {
 public:
  Row(const QkvOp& op, const RowKernels& rows, const float* rope)
      : op_(op), rows_(rows), rope_(rope), rounded_(op.q_out.dtype == DType::kBF16) {}

  void Run(int64_t row, std::vector<float>& work) const {
    const SequenceRows* sequence = nullptr;
    const int64_t position = PositionOf(op_.batch, row, &sequence), hd = op_.head_dim;
    work.resize(static_cast<size_t>(std::max(op_.heads, op_.kv_heads) * hd));
    float* x = work.data();
    Prepare(op_.q.row<float>(row), op_.heads, op_.q_norm, row, x);
    if (rounded_) rows_.to_bf16(x, op_.heads * hd, op_.q_out.row<uint16_t>(row));
    else std::copy(x, x + op_.heads * hd, op_.q_out.row<float>(row));
    Prepare(op_.k.row<float>(row), op_.kv_heads, op_.k_norm, row, x);
    if (rounded_) rows_.round_bf16(x, op_.kv_heads * hd);
    Append(*sequence, row, position, true, x);
    std::copy_n(op_.v.row<float>(row), op_.kv_heads * hd, x);
    if (op_.clip > 0) rows_.clamp(x, op_.kv_heads * hd, op_.clip);
    if (rounded_) rows_.round_bf16(x, op_.kv_heads * hd);
    Append(*sequence, row, position, false, x);
  }

 private:
  void Prepare(const float* in, int64_t heads, const float* weight, int64_t row, float* x) const {
    const int64_t hd = op_.head_dim, all = heads * hd;
    if (op_.norm == QkNorm::kFlat) {
      rows_.rms_norm(in, weight, all, op_.eps, op_.plus_one, x, false);
    } else if (op_.norm == QkNorm::kPerHead) {
      for (int64_t h = 0; h < heads; ++h) rows_.rms_norm(in + h * hd, weight, hd, op_.eps, op_.plus_one, x + h * hd, false);
    } else {
      std::copy(in, in + all, x);
    }
    if (rounded_ && op_.norm != QkNorm::kNone) rows_.round_bf16(x, all);
    if (op_.clip > 0) rows_.clamp(x, all, op_.clip);
    const int64_t half = op_.rope.dims / 2;
    const float* table = rope_ + row * 2 * half;
    if (half > 0)
      for (int64_t h = 0; h < heads; ++h) rows_.rope(x + h * hd, table, table + half, half);
  }

  // x was rounded to BF16 in the rounded form, whatever the cache holds.
  void Append(const SequenceRows& s, int64_t row, int64_t position, bool key, const float* x) const {
    const KvSpec& spec = op_.kv.spec;
    const int64_t hd = op_.head_dim, token = position % spec.block_tokens, block = s.blocks[position / spec.block_tokens];
    const bool f32 = spec.dtype == DType::kF32, fp8 = spec.dtype == DType::kF8E4M3;
    // V keeps pairs of tokens side by side; the partner that is not written yet must be finite, because its weight of 0 meets it
    // in P V.
    const bool clear = !key && position % 2 == 0 && row + 1 == s.first_row + s.rows;
    const float scale = key ? op_.kv.k_scale : op_.kv.v_scale;
    for (int64_t h = 0; h < op_.kv_heads; ++h) {
      std::byte* part = HeadPart(op_.kv, block, h);
      for (int64_t i = 0; i < hd; ++i) {
        float value = x[h * hd + i];
        int64_t at = key ? KIndex(hd, f32, token, i) : VIndex(hd, spec.block_tokens, f32, token, i);
        if (f32) {
          reinterpret_cast<float*>(part)[at] = value;
        } else if (fp8) {
          reinterpret_cast<uint8_t*>(part)[at] = numerics::FloatToE4m3(value / scale);
          if (clear) reinterpret_cast<uint8_t*>(part)[at + 1] = 0;
        } else {
          reinterpret_cast<uint16_t*>(part)[at] = numerics::FloatToBf16(value);
          if (clear) reinterpret_cast<uint16_t*>(part)[at + 1] = 0;
        }
      }
    }
  }

  const QkvOp& op_;
  const RowKernels& rows_;
  const float* rope_;
  const bool rounded_;
};

}  // namespace

const float* RopeCache::Get(const RopeSpec& rope, const Batch& batch) {
  const int64_t half = rope.dims / 2;
  if (half == 0) return nullptr;
  std::vector<float> key{rope.scale};
  key.insert(key.end(), rope.inv_freq, rope.inv_freq + half);
  std::vector<int64_t> positions(static_cast<size_t>(batch.rows));
  for (const SequenceRows& s : batch.sequences)
    for (int64_t i = 0; i < s.rows; ++i) positions[static_cast<size_t>(s.first_row + i)] = s.first_position + i;
  for (const Entry& e : entries_)
    if (e.key == key && e.positions == positions) return e.table.data();
  Entry& e = entries_[next_];
  next_ = 1 - next_;
  e.table.resize(static_cast<size_t>(batch.rows * 2 * half));
  platform::ParallelFor(batch.rows, 8, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      for (int64_t i = 0; i < half; ++i) {
        float angle = static_cast<float>(positions[static_cast<size_t>(t)]) * rope.inv_freq[i];
        float* row = e.table.data() + t * 2 * half;
        row[i] = static_cast<float>(std::cos(static_cast<double>(angle))) * rope.scale;
        row[half + i] = static_cast<float>(std::sin(static_cast<double>(angle))) * rope.scale;
      }
  });
  e.key = std::move(key);
  e.positions = std::move(positions);
  return e.table.data();
}

void RunQkv(const QkvOp& op, const KernelChoice& kernels, RopeCache& ropes) {
  if (op.batch.rows == 0) return;
  HB_CHECK(op.head_dim % 2 == 0 && op.kv.spec.block_tokens % 16 == 0, "head dim ", op.head_dim, ", block of ",
           op.kv.spec.block_tokens, " tokens");
  const Row row(op, *kernels.rows, ropes.Get(op.rope, op.batch));
  platform::ParallelFor(op.batch.rows, 4, [&](int64_t begin, int64_t end) {
    std::vector<float> work;
    for (int64_t t = begin; t < end; ++t) row.Run(t, work);
  });
}

}  // namespace halfbyte::kernels::cpu
