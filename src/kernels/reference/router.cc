// Router: softmax over all experts, the k best, optionally renormalized.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "kernels/reference/ops.h"
#include "kernels/reference/rows.h"
#include "platform/parallel.h"

namespace halfbyte::kernels::reference {
namespace {

// Ordered by logit, not by probability: two logits that differ may have one FP32 probability, and then the lower id would win over the
// better expert. NaN counts as the worst, so that the order stays total and the ids stay valid.
std::vector<int32_t> Best(const std::vector<double>& logits, int64_t k) {
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto key = [&](int32_t e) { return std::isnan(logits[static_cast<size_t>(e)]) ? -INFINITY : logits[static_cast<size_t>(e)]; };
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) { return key(a) > key(b); });
  ids.resize(static_cast<size_t>(k));
  return ids;
}

}  // namespace

void RunRoute(const RouteOp& op) {
  HB_CHECK(op.score == RouterScore::kSoftmax);
  HB_CHECK(0 < op.top_k && op.top_k <= op.logits.cols, "top ", op.top_k, " of ", op.logits.cols);
  HB_CHECK(static_cast<int64_t>(op.ids.size()) >= op.logits.rows * op.top_k && op.weights.size() >= op.ids.size());
  platform::ParallelFor(op.logits.rows, 16, [&](int64_t begin, int64_t end) {
    std::vector<double> logits(static_cast<size_t>(op.logits.cols));
    for (int64_t t = begin; t < end; ++t) {
      LoadRow(op.logits, t, logits.data());
      const std::vector<int32_t> best = Best(logits, op.top_k);
      const double largest = logits[static_cast<size_t>(best[0])];
      double sum = 0, chosen = 0;
      for (double l : logits) sum += std::exp(l - largest);
      for (int32_t e : best) chosen += std::exp(logits[static_cast<size_t>(e)] - largest);
      for (int64_t s = 0; s < op.top_k; ++s) {
        const int32_t e = best[static_cast<size_t>(s)];
        op.ids[static_cast<size_t>(t * op.top_k + s)] = e;
        op.weights[static_cast<size_t>(t * op.top_k + s)] =
            static_cast<float>(std::exp(logits[static_cast<size_t>(e)] - largest) / (op.normalize ? chosen : sum) * op.scaling);
      }
    }
  });
}

}  // namespace halfbyte::kernels::reference
