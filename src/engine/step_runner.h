// StepRunner: all that the engine needs of a model, so that scheduling is tested with a made-up one. engine/model_runner.h is the real one.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "model/model.h"

namespace halfbyte::engine {

// The memory of sequences, as counts (model/state_pool.h holds the bytes).
struct StateGeometry {
  int64_t block_tokens = 16;
  int64_t blocks = 0;
  int64_t slots = 0;
  bool paged = true;       // some layer keeps K and V: sequences own blocks
  bool fixed = false;      // some layer keeps a state of constant size: a sequence owns a slot, and prompt chunks end at multiples of 64
  int64_t window = 0;      // tokens that the layer which sees most still sees; 0: some layer sees all, no block is ever out of sight

  int64_t BlocksFor(int64_t tokens) const { return paged ? (tokens + block_tokens - 1) / block_tokens : 0; }
};

struct ModelTraits {
  int64_t vocab = 0;
  int64_t max_positions = 0;
  std::vector<int32_t> eos;
  StateGeometry state;
};

// One thread at a time calls it.
class StepRunner {
 public:
  virtual ~StepRunner() = default;
  virtual const ModelTraits& traits() const = 0;

  // Logits F32 [step.logit_rows.size(), V] in host memory, valid until the next call (model::Model::Forward).
  virtual base::Result<kernels::Matrix> Run(const model::Step& step) = 0;

  virtual base::Status ClearSlot(int64_t slot) = 0;
  virtual base::Status CopyBlock(int64_t from, int64_t to) = 0;
  virtual base::Status CopySlot(int64_t from, int64_t to) = 0;
};

}  // namespace halfbyte::engine
