// SwiGLU of dense MLPs, gated addition, row selection.
#include <cmath>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "kernels/reference/ops.h"
#include "kernels/reference/rows.h"
#include "platform/parallel.h"

namespace halfbyte::kernels::reference {

void RunSiluMul(const SiluMulOp& op) {
  HB_CHECK(op.gate.rows == op.out.rows && op.up.rows == op.out.rows && op.gate.cols == op.out.cols && op.up.cols == op.out.cols);
  platform::ParallelFor(op.out.rows, 8, [&](int64_t begin, int64_t end) {
    std::vector<double> gate(static_cast<size_t>(op.out.cols)), up(gate.size());
    for (int64_t t = begin; t < end; ++t) {
      LoadRow(op.gate, t, gate.data());
      LoadRow(op.up, t, up.data());
      for (size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1.0 + std::exp(-gate[i])) * up[i];
      StoreRow(gate, op.out, t);
    }
  });
}

void RunAddGated(const AddGatedOp& op) {
  HB_CHECK(op.y.rows == op.out.rows && op.y.cols == op.out.cols);
  platform::ParallelFor(op.out.rows, 8, [&](int64_t begin, int64_t end) {
    std::vector<double> y(static_cast<size_t>(op.out.cols)), out(y.size());
    for (int64_t t = begin; t < end; ++t) {
      LoadRow(op.y, t, y.data());
      LoadRow(op.out, t, out.data());
      double factor = 1;
      if (op.gate.data) {
        LoadRow(Matrix(op.gate.row<float>(t), op.gate.dtype, 1, 1), 0, &factor);
        factor = 1.0 / (1.0 + std::exp(-factor));
      }
      for (size_t i = 0; i < y.size(); ++i) out[i] += y[i] * factor;
      StoreRow(out, op.out, t);
    }
  });
}

void RunGatherRows(const GatherRowsOp& op) {
  HB_CHECK(op.x.dtype == op.out.dtype && op.x.cols == op.out.cols && op.out.rows == static_cast<int64_t>(op.rows.size()));
  const auto bytes = static_cast<size_t>(op.x.cols * tensor::DTypeBits(op.x.dtype) / 8);
  for (int64_t i = 0; i < op.out.rows; ++i) {
    const int64_t r = op.rows[static_cast<size_t>(i)];
    std::memcpy(op.out.Rows(i, i + 1).data, op.x.Rows(r, r + 1).data, bytes);
  }
}

}  // namespace halfbyte::kernels::reference
