// WeightSink: where the load pipeline puts finished weights: into a model's memory, or into files.
#pragma once

#include <span>

#include "quant/source.h"
#include "tensor/matrix.h"

namespace halfbyte::quant {

class WeightSink {
 public:
  virtual ~WeightSink() = default;

  // Rows [row_begin, row_begin + part.rows) of a planned matrix in its target format. Called from many threads, never twice for a row.
  virtual base::Status PutMatrix(const TensorId& id, int64_t row_begin, const tensor::QuantizedMatrix& part) = 0;
  // A whole vector as FP32: a norm's weight (kWeight), a bias (kBias), a static activation scale (kInputScale, one value), k and v scales.
  virtual base::Status PutVector(const TensorId& id, TensorPart part, std::span<const float> values) = 0;
};

}  // namespace halfbyte::quant
