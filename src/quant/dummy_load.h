// Random weights in the shapes and formats of a plan, without files: for benchmarks of shapes (--load-format dummy).
#pragma once

#include "quant/plan.h"
#include "quant/weight_sink.h"

namespace halfbyte::quant {

// A source map in which every expected matrix is `format` and has no bytes.
SourceMap DummySources(const std::vector<ExpectedTensor>& expected, bool tied);

// Fills every planned matrix with seeded random values of about N(0, 0.02) in its target format, vectors with ones (norms) or zeros (biases).
base::Status RunDummyLoad(const QuantPlan& plan, WeightSink& sink, uint64_t seed);

}  // namespace halfbyte::quant
