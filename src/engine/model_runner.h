// ModelRunner: the StepRunner over a loaded model and its state pool.
#pragma once

#include <memory>
#include <optional>

#include "engine/step_runner.h"

namespace halfbyte::engine {

struct StateOptions {
  int64_t block_tokens = 16;      // a multiple of 16
  int64_t sequences = 1;          // that will be open at once
  int64_t max_tokens = 0;         // of one sequence; 0: the model's max_positions, or what the memory allows where that is less
  int64_t cache_tokens = 0;       // of the paged state, all sequences together; 0: sequences * max_tokens, at most half of the memory that is free now
  std::optional<tensor::DType> kv_dtype;  // BF16 or F8_E4M3; unset: BF16. The exact arithmetic keeps F32 always
};

class ModelRunner : public StepRunner {
 public:
  // kOutOfMemory names the sizes and the flag to lower.
  static base::Result<std::unique_ptr<ModelRunner>> Create(std::unique_ptr<model::Model> model, const StateOptions& options);

  model::Model& model() { return *model_; }
  model::StatePool& pool() { return *pool_; }

  const ModelTraits& traits() const override { return traits_; }
  base::Result<kernels::Matrix> Run(const model::Step& step) override { return model_->Forward(step, *pool_); }
  base::Status ClearSlot(int64_t slot) override { return pool_->ClearSlot(slot); }
  base::Status CopyBlock(int64_t from, int64_t to) override { return pool_->CopyBlock(from, to); }
  base::Status CopySlot(int64_t from, int64_t to) override { return pool_->CopySlot(from, to); }

 private:
  ModelRunner() = default;
  std::unique_ptr<model::Model> model_;
  std::unique_ptr<model::StatePool> pool_;
  ModelTraits traits_;
};

// The counts that follow from the layers, the options and the free memory.
base::Result<StateGeometry> PlanState(const std::vector<model::LayerState>& layers, const StateOptions& options, int64_t max_positions, uint64_t free_memory);

}  // namespace halfbyte::engine
