// ExportPlan: what the new checkpoint of `quantize` holds, tensor by tensor, and where each comes from. Decided from headers.
//
// A tensor of the source is either replaced or copied byte for byte, never decoded and written again:
//   replaced   the weights (with all their scales) of matrices that become NVFP4, or are NVFP4 already and change their dialect or their stack:
//              one 2-D matrix an expert, named like the source's module
//   copied     everything else: dense layers (FP8 ones with their scales), norms, biases, KV scales, MTP layers, vision towers. In compressed-tensors' dialect
//              the scales of FP8 layers get the names and shapes it wants, with the same bytes
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/quant_config_writer.h"
#include "checkpoint/quant_metadata.h"
#include "checkpoint/safetensors_writer.h"
#include "quant/plan.h"

namespace halfbyte::quant {

enum class ExportFormat : uint8_t { kModelopt, kCompressedTensors };

// The endings of an NVFP4 matrix's tensors in a dialect, and what its FP32 scales mean.
struct Nvfp4Dialect {
  std::string_view weight, scale, outer, input;
  bool divisors = false;   // the FP32 scales are divisors (the reciprocals of ModelOpt's)
  bool rank_one = false;   // and have shape [1], not []
};
const Nvfp4Dialect& DialectOf(ExportFormat format);

// Static activation scales of one layer's experts, as multipliers.
struct LayerInputScales {
  float gate_up = 1.0f, down = 1.0f;
};

struct ExportOptions {
  numerics::WeightContract contract = numerics::WeightContract::Modelopt(numerics::Flavour::kCuda);
  ExportFormat format = ExportFormat::kModelopt;
  std::optional<bool> weight_only;        // W4A16: no activation scales. None: as an NVFP4 source is, false for others
  bool dense = false;                     // dense linear layers too, lm_head excepted (as ModelOpt's NVFP4_DEFAULT_CFG)
  LayerSelection ignored, excluded;       // --ignore-layers, --exclude
  bool obey_source_list = false;          // the source's own exclude list counts too
  std::map<int32_t, LayerInputScales> input_scales;  // measured ones by layer; 1.0 where there are none
  std::vector<std::pair<std::string, std::string>> settings;  // how it was done, recorded with the producer
  std::string version;                    // of this program
};

// A matrix that is written as NVFP4.
struct ExportedMatrix {
  int32_t matrix = 0;   // of ExportPlan::load.matrices
  std::string module;   // its name in the new checkpoint, "model.layers.0.mlp.experts.3.gate_proj"
};

struct ExportPlan {
  QuantPlan load;                              // its units hold the written matrices only
  std::map<TensorId, ExportedMatrix> written;
  std::vector<const TensorEntry*> copied;      // in file order
  std::map<const TensorEntry*, std::string> renamed;   // copied under another name
  std::vector<checkpoint::TensorDeclaration> tensors;  // all that is written, in the source's order
  checkpoint::WrittenQuant config;
  ExportFormat format = ExportFormat::kModelopt;
  std::map<int32_t, LayerInputScales> input_scales;
  std::map<std::string, int64_t> carried;      // tensors that no load reads, by reason ("MTP layer"): copied too
  int64_t bytes_to_read = 0;
};

// files and sources: of the same checkpoint (sources points into it); names: the family's; source_options as MapSources had them.
// A plan that would convert nothing and hold no NVFP4 matrix is an error that says why.
base::Result<ExportPlan> MakeExportPlan(const checkpoint::Checkpoint& files, const checkpoint::NameMap& names, SourceMap sources, const SourceOptions& source_options,
                                        const checkpoint::QuantMetadata& metadata, const ExportOptions& options);

// What will be written, for people: the table of groups, what is copied beside it, patterns, warnings. Ends with a newline.
std::string ExportReport(const ExportPlan& plan);

}  // namespace halfbyte::quant
