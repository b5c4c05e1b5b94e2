#include "engine/model_runner.h"

#include "platform/memory.h"

namespace halfbyte::engine {

base::Result<std::unique_ptr<ModelRunner>> ModelRunner::Create(std::unique_ptr<model::Model> model, const StateOptions& options) {
  std::unique_ptr<ModelRunner> runner(new ModelRunner);
  const bool exact = model->arithmetic() == model::Arithmetic::kExact;
  const tensor::DType kv = exact ? tensor::DType::kF32 : options.kv_dtype.value_or(tensor::DType::kBF16);
  std::vector<model::LayerState> layers = model::LayerStates(model->spec(), options.block_tokens, kv);
  HB_ASSIGN_OR_RETURN(runner->traits_.state, PlanState(layers, options, model->spec().max_positions, platform::AvailableMemory()));
  HB_ASSIGN_OR_RETURN(runner->pool_, model::StatePool::Create(model->backend(), std::move(layers), runner->traits_.state.blocks, runner->traits_.state.slots));
  runner->traits_.vocab = model->spec().vocab;
  runner->traits_.max_positions = model->spec().max_positions;
  runner->traits_.eos = model->spec().eos;
  runner->model_ = std::move(model);
  return runner;
}

}  // namespace halfbyte::engine
