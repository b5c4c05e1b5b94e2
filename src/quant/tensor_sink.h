// TensorSink: puts converted matrices into the files of a new checkpoint.
#pragma once

#include "checkpoint/safetensors_writer.h"
#include "quant/export_plan.h"
#include "quant/weight_sink.h"

namespace halfbyte::quant {

class TensorSink : public WeightSink {
 public:
  TensorSink(checkpoint::SafetensorsWriter& writer, const ExportPlan& plan) : writer_(writer), plan_(plan) {}

  // NVFP4 rows of a matrix of plan.written: codes and block scales; the FP32 scale too where the matrix was converted now. (Those of matrices
  // that were NVFP4 before are written by RunExport, from the file: a divisor does not survive two reciprocals.)
  base::Status PutMatrix(const TensorId& id, int64_t row_begin, const tensor::QuantizedMatrix& part) override;
  base::Status PutVector(const TensorId& id, TensorPart part, std::span<const float> values) override;

 private:
  checkpoint::SafetensorsWriter& writer_;
  const ExportPlan& plan_;
};

}  // namespace halfbyte::quant
