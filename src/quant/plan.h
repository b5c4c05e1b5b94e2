// QuantPlan: what becomes of every tensor, decided once from headers, before a byte of data is read. Printed as the load report.
#pragma once

#include "numerics/weight_quantizer.h"
#include "quant/layer_selection.h"
#include "quant/mode.h"
#include "quant/source.h"

namespace halfbyte::quant {

enum class Action : uint8_t {
  kKeep,        // the bytes as they are
  kConvert,     // another plain type (FP16 or FP32 -> BF16)
  kDequantize,  // to BF16
  kQuantize,    // to NVFP4 or FP8
  kReuse,       // NVFP4 already; bytes as they are
};
std::string_view ActionName(Action action);

struct PlannedMatrix {
  SourceMatrix source;
  Action action = Action::kKeep;
  Format target;
};

// Matrices that are read and finished together by one worker: gate and up of an expert (they share their amax), a down alone, the
// embedding and a head tied to it (read once).
struct PlanUnit {
  std::vector<int32_t> matrices;
  bool shares_amax = false;
};

enum class DenseQuantization : uint8_t { kNone, kFp8, kNvfp4 };

struct PlanOptions {
  QuantMode mode = QuantMode::kNone;
  bool mode_is_explicit = false;                    // not `auto`: a mode that can do nothing is then an error
  numerics::WeightContract contract;                // of matrices that become NVFP4
  tensor::DType plain = tensor::DType::kBF16;       // what FP16 and FP32 matrices become: BF16, or F32 on `reference`
  DenseQuantization dense = DenseQuantization::kNone;
  bool convert_head = true;                         // lm_head belongs to the dense matrices that `dense` means
  LayerSelection ignored;                           // --ignore-layers: experts to leave as they are
  LayerSelection excluded;                          // quantize --exclude: experts and dense matrices to leave as they are
  LayerSelection source_ignored;                    // the checkpoint's own exclude list
  bool obey_source_list = false;                    // modelopt_fp4 does without being told
};

struct QuantPlan {
  QuantMode mode = QuantMode::kNone;
  numerics::WeightContract contract;
  std::vector<PlannedMatrix> matrices;
  std::vector<SourceVector> vectors;
  std::vector<PlanUnit> units;                      // in reading order
  std::vector<PatternMatches> patterns;
  std::vector<std::string> warnings;
  std::map<std::string, int64_t> skipped;           // reason -> tensors not loaded
  int64_t discarded = 0;                            // companions that no mode reads
  bool tied = false;
  int64_t bytes_before = 0, bytes_after = 0;        // of the matrices
  int64_t experts_converted = 0;                    // (layer, expert) pairs

  // The planned matrix, or null.
  const PlannedMatrix* Find(const TensorId& id) const;
  // Bytes of the matrix in the files; a head tied to the embedding has none of its own.
  int64_t BytesBefore(const PlannedMatrix& m) const;
  std::map<TensorId, int32_t> index;                // id -> matrices[]
};

// Where a matrix is complete, for reading files from front to back: file, then the later of its weight's and its scale's first bytes.
std::pair<int, uint64_t> ReadingPosition(const SourceMatrix& m);

base::Result<QuantPlan> MakePlan(SourceMap sources, const PlanOptions& options);

}  // namespace halfbyte::quant
