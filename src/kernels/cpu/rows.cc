// Ops that treat rows one by one. Several rows make a task, so that a step of one row forks nothing.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/ops.h"
#include "kernels/cpu/packed_linear.h"
#include "platform/parallel.h"

namespace halfbyte::kernels::cpu {
namespace {

// Rows that are worth a task: 64 KiB of floats, about 5 us.
int64_t RowGrain(int64_t cols) { return std::max<int64_t>(1, (16 << 10) / std::max<int64_t>(1, cols)); }

void* RowOf(const MutableMatrix& m, int64_t r) {
  return static_cast<std::byte*>(m.data) + r * m.ld * tensor::DTypeBits(m.dtype) / 8;
}

template <typename Body>
void ForRows(int64_t rows, int64_t cols, Body body) {
  platform::ParallelFor(rows, RowGrain(cols), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) body(r);
  });
}

}  // namespace

void RunEmbed(const EmbedOp& op, const KernelChoice& kernels) {
  auto* table = static_cast<const PackedEmbedding*>(op.table);
  ForRows(static_cast<int64_t>(op.tokens.size()), table->d(), [&](int64_t t) {
    int32_t id = op.tokens[static_cast<size_t>(t)];
    HB_CHECK(0 <= id && id < table->vocab(), "token ", id, " of ", table->vocab());
    float* out = op.out.row<float>(t);
    if (table->dtype() == DType::kBF16) kernels.rows->from_bf16(static_cast<const uint16_t*>(table->row(id)), table->d(), out);
    else std::memcpy(out, table->row(id), static_cast<size_t>(table->d()) * 4);
  });
}

void RunRmsNorm(const RmsNormOp& op, const KernelChoice& kernels) {
  ForRows(op.x.rows, op.x.cols, [&](int64_t r) {
    kernels.rows->rms_norm(op.x.row<float>(r), op.weight, op.x.cols, op.eps, op.plus_one, RowOf(op.out, r),
                           op.out.dtype == DType::kBF16);
  });
}

void RunSiluMul(const SiluMulOp& op, const KernelChoice& kernels) {
  ForRows(op.gate.rows, op.gate.cols, [&](int64_t r) {
    kernels.rows->silu_mul(op.gate.row<float>(r), op.up.row<float>(r), op.gate.cols, RowOf(op.out, r),
                           op.out.dtype == DType::kBF16);
  });
}

void RunAddGated(const AddGatedOp& op, const KernelChoice& kernels) {
  ForRows(op.y.rows, op.y.cols, [&](int64_t r) {
    float gate = op.gate.data ? 1.0f / (1.0f + std::exp(-*op.gate.row<float>(r))) : 1.0f;
    kernels.rows->add_scaled(op.y.row<float>(r), gate, op.y.cols, op.out.row<float>(r));
  });
}

void RunGatherRows(const GatherRowsOp& op) {
  const int64_t element = tensor::DTypeBits(op.x.dtype) / 8;
  ForRows(static_cast<int64_t>(op.rows.size()), op.x.cols, [&](int64_t i) {
    int64_t from = op.rows[static_cast<size_t>(i)];
    HB_CHECK(0 <= from && from < op.x.rows, "row ", from, " of ", op.x.rows);
    std::memcpy(RowOf(op.out, i), static_cast<const std::byte*>(op.x.data) + from * op.x.ld * element,
                static_cast<size_t>(op.x.cols * element));
  });
}

}  // namespace halfbyte::kernels::cpu
