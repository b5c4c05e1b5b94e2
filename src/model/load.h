// From a folder to a running model: read headers, decide the plan, check memory, load, prove completeness.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/quant_metadata.h"
#include "model/model.h"
#include "model/weights.h"
#include "quant/load_pipeline.h"
#include "quant/plan.h"

namespace halfbyte::model {

// What headers and free memory say about a load that may begin.
struct Admission {
  const ModelSpec& spec;
  Arithmetic arithmetic;
  uint64_t memory_left;  // bytes that are free beside the loaded weights
};

struct LoadSettings {
  std::string quantization = "auto";
  std::string device = "auto";
  int threads = 0;
  std::vector<std::string> ignore_layers;
  quant::DenseQuantization dense = quant::DenseQuantization::kNone;
  std::optional<Arithmetic> arithmetic;  // none: exact on reference, rounded elsewhere
  bool dummy = false;                    // random weights: the folder needs only a config.json
  checkpoint::CheckpointOptions files;   // how files are read; faults for tests
  std::vector<std::pair<std::string, std::string>> kernels;
  std::function<void(const quant::LoadProgress&)> progress;
  std::function<void(const quant::QuantPlan&)> planned;  // called before a byte of data is read: the load report
  std::function<base::Status(const Admission&)> admit;   // after it: an error ends the load before it has cost anything
};

// A folder's headers, understood: which tensors make up which matrix, before anything is decided about them.
struct OpenedModel {
  checkpoint::Checkpoint files;
  ModelSpec spec;
  checkpoint::NameMap names;
  checkpoint::QuantMetadata metadata;
  quant::SourceOptions source_options;
  quant::SourceMap sources;  // points into files
};
base::Result<OpenedModel> OpenModel(const std::filesystem::path& folder, checkpoint::CheckpointOptions options = {});

// What headers say: enough for `inspect`, and the first half of a load.
struct Prepared {
  std::optional<checkpoint::Checkpoint> files;  // none for dummy weights and for a bare config
  ModelSpec spec;
  quant::QuantPlan plan;
  std::string producer;                         // "modelopt 0.47.0", empty where nobody said
};
// backend_name: whose rules apply (plain types, supported modes).
base::Result<Prepared> Prepare(const std::filesystem::path& folder, const LoadSettings& settings, std::string_view backend_name);
// The same from a config.json alone: every tensor is taken to be BF16.
base::Result<Prepared> PrepareFromConfig(const base::Json& config, const base::Json& generation_config, const LoadSettings& settings, std::string_view backend_name);

// The most memory that loading will have taken, weights included: packed weights, the sources of the two largest conversions of every
// worker, and a fixed part for staging and the program. Checked against what is free before a byte is read.
int64_t PeakBytes(const Prepared& prepared, int64_t packed_bytes, int workers = 0);

// Proven complete, on `backend`, beside whatever else is there.
struct LoadedWeights {
  ModelSpec spec;
  quant::QuantPlan plan;
  std::unique_ptr<Weights> weights;
  quant::LoadStats stats;
  int64_t packed_bytes = 0;
};
base::Result<LoadedWeights> LoadWeights(kernels::Backend& backend, const std::filesystem::path& folder, const LoadSettings& settings, Arithmetic arithmetic);

struct LoadedModel {
  std::unique_ptr<Model> model;
  quant::QuantPlan plan;
  quant::LoadStats stats;
  int64_t packed_bytes = 0;
};
base::Result<LoadedModel> LoadModel(const std::filesystem::path& folder, const LoadSettings& settings);

}  // namespace halfbyte::model
