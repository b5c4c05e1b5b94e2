#include "bench_costs.h"

#include <algorithm>
#include <cmath>

namespace halfbyte::app {
namespace {

using checkpoint::TensorRole;

enum Part { kExperts, kProjections, kDense, kLmHead, kKv, kParts };

Part PartOf(TensorRole role) {
  switch (role) {
    case TensorRole::kExpertGate: case TensorRole::kExpertUp: case TensorRole::kExpertDown: return kExperts;
    case TensorRole::kQ: case TensorRole::kK: case TensorRole::kV: case TensorRole::kO: return kProjections;
    case TensorRole::kLmHead: return kLmHead;
    default: return kDense;
  }
}

}  // namespace

std::vector<PartCost> StepCosts(const model::ModelSpec& spec, const quant::QuantPlan& plan, const StepShape& step, double kv_bytes_per_value) {
  std::vector<PartCost> parts(kParts);
  const char* names[] = {"experts", "attention projections", "dense", "lm_head", "KV attention"};
  for (int i = 0; i < kParts; ++i) parts[static_cast<size_t>(i)].part = names[i];
  const double rows = static_cast<double>(step.rows);
  for (const quant::PlannedMatrix& m : plan.matrices) {
    const TensorRole role = m.source.id.role;
    if (role == TensorRole::kEmbedding) continue;  // one row a token
    PartCost& p = parts[PartOf(role)];
    const double bytes = static_cast<double>(m.target.Bytes(m.source.rows, m.source.cols)), flop = 2.0 * static_cast<double>(m.source.rows) * static_cast<double>(m.source.cols);
    if (PartOf(role) == kExperts) {
      const model::MoeSpec& moe = *spec.layers[static_cast<size_t>(m.source.id.layer)].moe;
      const double share = static_cast<double>(moe.top_k) / static_cast<double>(moe.experts);
      p.bytes += bytes * (1 - std::pow(1 - share, rows));
      p.flop += flop * share * rows;
    } else {
      const double r = role == TensorRole::kLmHead ? static_cast<double>(step.logit_rows) : rows;
      if (r == 0) continue;
      p.bytes += bytes;
      p.flop += flop * r;
    }
  }
  for (const model::LayerSpec& l : spec.layers) {
    const model::AttentionSpec& a = l.attention;
    parts[kKv].bytes += step.keys * 2.0 * static_cast<double>(a.kv_heads * a.head_dim) * kv_bytes_per_value;
    parts[kKv].flop += step.key_products * 4.0 * static_cast<double>(a.heads * a.head_dim);
  }
  std::erase_if(parts, [](const PartCost& p) { return p.bytes == 0 && p.flop == 0; });
  return parts;
}

double LimitSeconds(const std::vector<PartCost>& parts, double bytes_per_second) {
  double s = 0;
  for (const PartCost& p : parts) s += std::max(p.bytes / bytes_per_second, p.flop / p.peak);
  return s;
}
double TotalBytes(const std::vector<PartCost>& parts) {
  double b = 0;
  for (const PartCost& p : parts) b += p.bytes;
  return b;
}
double TotalFlop(const std::vector<PartCost>& parts) {
  double f = 0;
  for (const PartCost& p : parts) f += p.flop;
  return f;
}

}  // namespace halfbyte::app
