// Router: softmax over all experts, the k best by logit (ties to the lowest id), optionally renormalized.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/ops.h"
#include "platform/parallel.h"

namespace halfbyte::kernels::cpu {
namespace {

// Ranked by logit, not by probability, which may be equal for two logits that differ. NaN ranks lowest.
void RouteRow(const RouteOp& op, int64_t t) {
  const float* logits = op.logits.row<float>(t);
  const int64_t experts = op.logits.cols, k = op.top_k;
  int32_t* ids = op.ids.data() + t * k;
  float* weights = op.weights.data() + t * k;
  auto key = [&](int64_t e) { return std::isnan(logits[e]) ? -std::numeric_limits<float>::infinity() : logits[e]; };
  int64_t held = 0;
  for (int64_t e = 0; e < experts; ++e) {
    if (held == k && !(key(e) > key(ids[k - 1]))) continue;
    int64_t at = held < k ? held++ : k - 1;
    for (; at > 0 && key(e) > key(ids[at - 1]); --at) ids[at] = ids[at - 1];
    ids[at] = static_cast<int32_t>(e);
  }
  // Weights in double: a few dozen exponentials a row, and no order of addition to care about.
  const double largest = logits[ids[0]];
  double all = 0, chosen = 0;
  if (!op.normalize)
    for (int64_t e = 0; e < experts; ++e) all += std::exp(logits[e] - largest);
  for (int64_t s = 0; s < k; ++s) chosen += std::exp(logits[ids[s]] - largest);
  for (int64_t s = 0; s < k; ++s)
    weights[s] = static_cast<float>(std::exp(logits[ids[s]] - largest) / (op.normalize ? chosen : all) * op.scaling);
}

}  // namespace

void RunRoute(const RouteOp& op) {
  HB_CHECK(op.score == RouterScore::kSoftmax);
  HB_CHECK(0 < op.top_k && op.top_k <= op.logits.cols, "top ", op.top_k, " of ", op.logits.cols);
  platform::ParallelFor(op.logits.rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) RouteRow(op, t);
  });
}

}  // namespace halfbyte::kernels::cpu
