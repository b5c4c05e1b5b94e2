// Source: which tensors of the files make up each logical matrix and vector of the model, and what their bits mean. Decided from headers
// alone; the tensors decide, not the labels in config.json.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/name_rules.h"
#include "tensor/format.h"

namespace halfbyte::quant {

using checkpoint::StackedLayout;
using checkpoint::TensorEntry;
using checkpoint::TensorId;
using checkpoint::TensorPart;
using checkpoint::TensorRole;
using tensor::Format;

// What the model needs to exist. Made by model/ from a ModelSpec.
struct ExpectedTensor {
  TensorId id;
  TensorPart part = TensorPart::kWeight;  // kWeight: a matrix [rows, cols], or a vector [rows] where cols == 0; kBias: a vector [rows]
  int64_t rows = 0, cols = 0;
};

// One logical matrix W [rows, cols] and where its bytes are.
struct SourceMatrix {
  TensorId id;
  int64_t rows = 0, cols = 0;
  Format format;                      // of the bytes in the files
  const TensorEntry* weight = nullptr;
  StackedLayout layout = StackedLayout::kPerExpert;
  int64_t stack_index = 0;            // expert number inside a stacked tensor
  int8_t half = -1;                   // 0 gate, 1 up inside a gate_up tensor; -1: the tensor is this matrix alone
  // Companions; null where the format has none. A stacked tensor's companions are stacked likewise.
  const TensorEntry* scale = nullptr;        // block, row or tensor scales
  const TensorEntry* outer = nullptr;        // NVFP4's FP32 scale
  bool outer_is_divisor = false;             // compressed-tensors' weight_global_scale
  const TensorEntry* input_scale = nullptr;  // static activation scale
  bool input_is_divisor = false;
  const TensorEntry* pre_scale = nullptr;    // NVFP4_AWQ: factors [cols] of the activations, W (x * pre_scale)
};

// One vector: a norm, a bias, a k/v scale.
struct SourceVector {
  TensorId id;
  TensorPart part = TensorPart::kWeight;
  int64_t size = 0;
  const TensorEntry* entry = nullptr;
};

struct SourceMap {
  std::vector<SourceMatrix> matrices;
  std::vector<SourceVector> vectors;
  std::map<std::string, int64_t> skipped;     // reason -> tensors
  int64_t skipped_bytes = 0;
  std::vector<const TensorEntry*> discarded;  // known companions that no mode reads (FP8 input scales, weight_shape)
  std::vector<std::string> warnings;
  bool tied = false;                          // lm_head's bytes are the embedding's
};

struct SourceOptions {
  std::optional<std::pair<int32_t, int32_t>> fp8_block;  // weight_block_size of the metadata
  bool head_may_be_embedding = true;  // a checkpoint without a head uses the embedding; false: its absence is an error
};

// Finds every expected tensor among the checkpoint's, companions included. Missing tensors, unknown names and companions without a
// use are errors that list the names: nothing is ever left unloaded in silence.
base::Result<SourceMap> MapSources(const checkpoint::Checkpoint& files, const checkpoint::NameMap& names, const std::vector<ExpectedTensor>& expected,
                                   const SourceOptions& options);

}  // namespace halfbyte::quant
