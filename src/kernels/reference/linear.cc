// Embedding rows and linear layers.
#include <numeric>

#include "kernels/reference/ops.h"
#include "kernels/reference/product.h"
#include "kernels/reference/weights.h"

namespace halfbyte::kernels::reference {

void RunEmbed(const EmbedOp& op) {
  const StoredMatrix& table = static_cast<const ReferenceEmbedding&>(*op.table).matrix();
  HB_CHECK(op.out.rows == static_cast<int64_t>(op.tokens.size()) && op.out.cols == table.k());
  std::vector<double> row(static_cast<size_t>(table.k()));
  for (int64_t t = 0; t < op.out.rows; ++t) {
    table.DecodeRow(op.tokens[t], row.data());
    StoreRow(row, op.out, t);
  }
}

void RunLinear(const LinearOp& op) {
  std::vector<int64_t> rows(static_cast<size_t>(op.x.rows));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  Activations x;
  float made_for = -1;
  for (const LinearPart& part : op.parts) {
    const float scale = part.weight->input_scale();
    if (scale != made_for) x = MakeActivations(op.x, scale > 0 ? ActivationForm::kNvfp4Static : ActivationForm::kPlain, scale > 0 ? scale : 1.0f);
    made_for = scale;
    const StoredMatrix& w = static_cast<const ReferenceLinear&>(*part.weight).matrix();
    HB_CHECK(part.out.dtype == DType::kF32 && part.out.rows == x.rows && part.out.cols == w.n());
    Multiply(x, rows, w, [&](int64_t t, int64_t n, double y) {
      float& out = part.out.row<float>(t)[n];
      if (part.bias) y += part.bias[n];
      if (part.accumulate) y += out;
      out = static_cast<float>(y);
    });
  }
}

}  // namespace halfbyte::kernels::reference
