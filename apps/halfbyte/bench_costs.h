// What a step must move and compute, part by part: the bytes and operations that bench holds its measurements against.
#pragma once

#include <string>
#include <vector>

#include "model/spec.h"
#include "quant/plan.h"

namespace halfbyte::app {

struct PartCost {
  std::string part;   // "experts", "attention projections", "dense", "lm_head", "KV attention"
  double bytes = 0;   // read once each
  double flop = 0;    // a multiply and an add counted as two
  double peak = 0;    // FLOP/s of the arithmetic that the part's kernels use; filled in by the caller
};

// One step of `rows` rows in all, one token each of `sequences` sequences (decode), or `rows` tokens of one sequence from position 0 on (prefill).
struct StepShape {
  int64_t rows = 0;
  double keys = 0;         // keys read by attention, summed over rows' sequences (decode: rows * context; prefill: each key once)
  double key_products = 0; // (query row, key) pairs
  int64_t logit_rows = 0;
};

// Experts: `rows` rows pick top_k each; with random routing E * (1 - (1 - k/E)^rows) different experts are touched.
std::vector<PartCost> StepCosts(const model::ModelSpec& spec, const quant::QuantPlan& plan, const StepShape& step, double kv_bytes_per_value);

// Seconds that no implementation can beat: the sum over parts of max(bytes / bandwidth, flop / peak).
double LimitSeconds(const std::vector<PartCost>& parts, double bytes_per_second);
double TotalBytes(const std::vector<PartCost>& parts);
double TotalFlop(const std::vector<PartCost>& parts);

}  // namespace halfbyte::app
