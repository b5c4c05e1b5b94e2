// LoadPipeline: carries out a QuantPlan: read > dequantize > amax > quantize > put, by several workers, each byte read once.
//
// A worker takes a whole unit (gate and up of an expert, a down, or a dense matrix in row chunks), so that the peak above the finished
// weights is a few matrices a worker. Units are taken in reading order; results do not depend on which worker took which.
#pragma once

#include "kernels/api/weight_quantizer.h"
#include "quant/plan.h"
#include "quant/progress.h"
#include "quant/weight_sink.h"

namespace halfbyte::quant {

struct LoadStats {
  int64_t bytes_read = 0;
  int64_t parameters = 0;             // of all matrices
  int64_t parameters_converted = 0;   // of those that became NVFP4 or FP8
  int64_t changed_by_rounding = 0;    // FP16 or FP32 values that are not exact in BF16
  int64_t mx_blocks_requantized = 0;  // MXFP4 blocks out of E4M3's reach, whose values may have changed
  double seconds = 0;
};

struct LoadOptions {
  int workers = 0;  // 0: platform::AllowedThreads()
  ProgressFunction progress;
  const kernels::WeightQuantizer* quantizer = &kernels::ChooseWeightQuantizer();
};

// Fails with the first error (by reading order where several happen). On success every planned matrix and vector was put exactly once.
base::Result<LoadStats> RunLoad(const checkpoint::Checkpoint& files, const QuantPlan& plan, WeightSink& sink, const LoadOptions& options);

}  // namespace halfbyte::quant
