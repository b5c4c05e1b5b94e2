// RunExport: carries out an ExportPlan: the load pipeline's steps up to Quantize, then files, and everything else copied beside them.
#pragma once

#include <filesystem>

#include "kernels/api/weight_quantizer.h"
#include "quant/export_plan.h"
#include "quant/progress.h"

namespace halfbyte::quant {

struct ExportRun {
  std::filesystem::path out;              // must not exist, or be an empty folder
  checkpoint::WriterOptions writer;       // shard size; hooks for tests
  int workers = 0;                        // 0: platform::AllowedThreads()
  ProgressFunction progress;
  const kernels::WeightQuantizer* quantizer = &kernels::ChooseWeightQuantizer();
};

struct ExportStats {
  int64_t tensors = 0;                    // written
  int64_t converted = 0, reused = 0;      // matrices that became NVFP4, that were NVFP4
  int64_t kept = 0;                       // tensors copied
  int64_t parameters_converted = 0;
  int64_t bytes_read = 0, bytes_written = 0;
  int shards = 0;
  std::vector<std::string> files;         // carried over beside the tensors: tokenizer, templates, ...
  double seconds = 0;
  std::vector<std::string> warnings;      // those of the plan included
};

// The new checkpoint appears whole under run.out or not at all. Every byte of the source is read once; memory is some matrices a worker.
base::Result<ExportStats> RunExport(const checkpoint::Checkpoint& files, const ExportPlan& plan, const ExportRun& run);

}  // namespace halfbyte::quant
