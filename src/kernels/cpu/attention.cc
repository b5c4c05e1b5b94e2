// Attention: tasks are (sequence, KV head, a few rows, their query heads); where those are too few for the threads, their keys are cut at absolute
// multiples of kAttentionSplit as well. Splits are folded in the order of position either way, so that the cut does not show in
// the result.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/ops.h"
#include "numerics/bf16.h"
#include "platform/parallel.h"

namespace halfbyte::kernels::cpu {
namespace {

struct Task {
  const SequenceRows* sequence;
  int64_t kv_head, row, rows;  // rows of the sequence
  int64_t head, heads;         // of the KV head's group; all of them unless the group is larger than a kernel takes
  int64_t first_split, splits;
  int64_t first_item;  // index of its first (task, split)
};

// Per-thread results of one call: m, l, o, then the kernel's scratch.
struct Partial {
  float *m, *l, *o;
  std::byte* scratch;
};

int64_t PartialFloats(int64_t head_dim) { return 2 * kAttentionVectors + kAttentionVectors * PaddedHeadDim(head_dim); }

Partial CarvePartial(std::byte* memory, int64_t head_dim) {
  auto* f = reinterpret_cast<float*>(memory);
  return {f, f + kAttentionVectors, f + 2 * kAttentionVectors, reinterpret_cast<std::byte*>(f + PartialFloats(head_dim))};
}

class Attend {
 public:
  Attend(const AttentionOp& op, const KernelChoice& kernels)
      : op_(op),
        kernel_(op.exact || op.q.dtype == DType::kF32 || op.kv.spec.dtype == DType::kF32 ? *kernels.attention_exact
                                                                                         : *kernels.attention),
        rows_(*kernels.rows),
        group_(op.heads / op.kv_heads) {
    HB_CHECK(op.heads % op.kv_heads == 0 && op.head_dim % 2 == 0, op.heads, " heads, ", op.kv_heads, " KV heads of ", op.head_dim);
    HB_CHECK(op.kv.spec.block_tokens % 16 == 0 && op.kv.spec.kv_heads == op.kv_heads && op.kv.spec.head_dim == op.head_dim);
    const int64_t tile = std::max<int64_t>(1, kAttentionVectors / group_);
    for (const SequenceRows& s : op.batch.sequences)
      for (int64_t row = 0; row < s.rows; row += tile)
        for (int64_t h = 0; h < op.kv_heads; ++h)
          for (int64_t head = 0; head < group_; head += kAttentionVectors)
            AddTask(s, h, row, std::min(tile, s.rows - row), head, std::min(kAttentionVectors, group_ - head));
  }

  void Run(Scratch& scratch) {
    const int64_t tasks = static_cast<int64_t>(tasks_.size());
    if (tasks >= 3 * platform::Threads() || items_ == tasks) {
      platform::ParallelFor(tasks, 1, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) RunWhole(tasks_[static_cast<size_t>(t)]);
      });
      return;
    }
    const int64_t stride = PartialFloats(op_.head_dim);
    auto* partials = reinterpret_cast<float*>(scratch.Get(items_ * stride * 4));
    platform::ParallelFor(items_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        size_t t = tasks_.size() - 1;
        while (tasks_[t].first_item > i) --t;
        Partial p = CarvePartial(reinterpret_cast<std::byte*>(partials + i * stride), op_.head_dim);
        p.scratch = ThreadScratch(kernel_.scratch_bytes(op_.head_dim));
        RunSplit(tasks_[t], tasks_[t].first_split + i - tasks_[t].first_item, p);
      }
    });
    platform::ParallelFor(tasks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const Task& task = tasks_[static_cast<size_t>(t)];
        auto at = [&](int64_t i) {
          return CarvePartial(reinterpret_cast<std::byte*>(partials + (task.first_item + i) * stride), op_.head_dim);
        };
        for (int64_t i = 1; i < task.splits; ++i) Fold(task, at(0), at(i));
        Finish(task, at(0));
      }
    });
  }

 private:
  void AddTask(const SequenceRows& s, int64_t kv_head, int64_t row, int64_t rows, int64_t head, int64_t heads) {
    int64_t first = s.first_position + row, last = first + rows - 1;
    int64_t begin = op_.window > 0 ? std::max<int64_t>(0, first + 1 - op_.window) / kAttentionSplit : 0;
    int64_t splits = last / kAttentionSplit - begin + 1;
    tasks_.push_back({&s, kv_head, row, rows, head, heads, begin, splits, items_});
    items_ += splits;
  }

  void RunSplit(const Task& t, int64_t split, const Partial& p) const {
    const SequenceRows& s = *t.sequence;
    const int64_t last = s.first_position + t.row + t.rows - 1, row = s.first_row + t.row;
    AttentionCall c;
    c.kv = op_.kv;
    c.blocks = s.blocks;
    c.kv_head = t.kv_head;
    c.q_bf16 = op_.q.dtype == DType::kBF16;
    c.q = static_cast<const std::byte*>(op_.q.data) + (row * op_.q.ld + (t.kv_head * group_ + t.head) * op_.head_dim) * (c.q_bf16 ? 2 : 4);
    c.q_ld = op_.q.ld;
    c.rows = t.rows;
    c.group = t.heads;
    c.head_dim = op_.head_dim;
    c.first_position = s.first_position + t.row;
    c.scale = op_.scale;
    c.window = op_.window;
    c.exact = op_.exact;
    c.key_begin = split * kAttentionSplit;
    c.key_end = std::min(last + 1, c.key_begin + kAttentionSplit);
    c.keys = s.first_position + s.rows;
    c.m = p.m;
    c.l = p.l;
    c.o = p.o;
    c.scratch = p.scratch;
    kernel_.partial(c);
  }

  void Fold(const Task& t, const Partial& into, const Partial& from) const {
    kernel_.fold(t.rows * t.heads, PaddedHeadDim(op_.head_dim), into.m, into.l, into.o, from.m, from.l, from.o);
  }

  void RunWhole(const Task& t) const {
    const int64_t each = PartialFloats(op_.head_dim) * 4;
    std::byte* memory = ThreadScratch(2 * each + kernel_.scratch_bytes(op_.head_dim));
    Partial sum = CarvePartial(memory, op_.head_dim), next = CarvePartial(memory + each, op_.head_dim);
    sum.scratch = next.scratch = memory + 2 * each;
    RunSplit(t, t.first_split, sum);
    for (int64_t i = 1; i < t.splits; ++i) {
      RunSplit(t, t.first_split + i, next);
      Fold(t, sum, next);
    }
    Finish(t, sum);
  }

  // out = o / l; the sink is one more logit of the denominator.
  void Finish(const Task& t, const Partial& p) const {
    const int64_t hd = op_.head_dim, hp = PaddedHeadDim(hd);
    for (int64_t v = 0; v < t.rows * t.heads; ++v) {
      int64_t row = t.sequence->first_row + t.row + v / t.heads, head = t.kv_head * group_ + t.head + v % t.heads;
      float* o = p.o + v * hp;
      float l = p.l[v], factor = op_.kv.spec.dtype == DType::kF8E4M3 ? op_.kv.v_scale : 1.0f;
      if (op_.sinks) {
        float sink = op_.sinks[head], top = std::max(p.m[v], sink), down = std::exp(p.m[v] - top);
        l = l * down + std::exp(sink - top);
        factor *= down;
      }
      factor /= l;
      for (int64_t i = 0; i < hd; ++i) o[i] *= factor;
      if (op_.out.dtype == DType::kBF16) rows_.to_bf16(o, hd, op_.out.row<uint16_t>(row) + head * hd);
      else std::copy(o, o + hd, op_.out.row<float>(row) + head * hd);
    }
  }

  const AttentionOp& op_;
  const AttentionKernel& kernel_;
  const RowKernels& rows_;
  const int64_t group_;
  std::vector<Task> tasks_;
  int64_t items_ = 0;
};

}  // namespace

void RunAttention(const AttentionOp& op, const KernelChoice& kernels, Scratch& scratch) {
  if (op.batch.rows == 0) return;
  Attend(op, kernels).Run(scratch);
}

}  // namespace halfbyte::kernels::cpu
