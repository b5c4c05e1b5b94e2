// The load report: what becomes of every group of tensors, as text for people and as JSON for programs.
#pragma once

#include "base/json.h"
#include "quant/plan.h"

namespace halfbyte::quant {

// Matrices of one role with the same source and target.
struct PlanGroup {
  TensorRole role;
  std::vector<int32_t> layers;  // ascending, distinct; empty for tensors without a layer
  int64_t count = 0;            // matrices
  Format source, target;
  Action action = Action::kKeep;
  int64_t bytes_before = 0, bytes_after = 0;
};
std::vector<PlanGroup> GroupPlan(const QuantPlan& plan);

// The table of groups and the sum, two spaces before each line; then the patterns with their match counts and the warnings.
std::string GroupLines(const QuantPlan& plan);
std::string RemarkLines(const QuantPlan& plan);

// The load report: a heading, the table, what is not loaded, then the patterns with their match counts, then the warnings. Ends with a newline.
std::string ReportText(const QuantPlan& plan);
// {"groups": [...], "patterns": [...], "warnings": [...], "skipped": {...}, "bytes_before", "bytes_after"}
base::Json ReportJson(const QuantPlan& plan);

}  // namespace halfbyte::quant
