// ModelRunner: the StepRunner over a loaded model and its state pool.
#pragma once

#include <memory>

#include "engine/state_plan.h"

namespace halfbyte::engine {

// Whether ModelRunner::Create will find memory for the state of such a model, asked before the weights are there. free_memory: bytes beside them.
base::Status CheckState(const model::ModelSpec& spec, model::Arithmetic arithmetic, const StateOptions& options, uint64_t free_memory);

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

}  // namespace halfbyte::engine
