#include "engine/model_runner.h"

#include "platform/memory.h"

namespace halfbyte::engine {

namespace {

std::vector<model::LayerState> LayersOf(const model::ModelSpec& spec, model::Arithmetic arithmetic, const StateOptions& options) {
  const bool exact = arithmetic == model::Arithmetic::kExact;
  return model::LayerStates(spec, options.block_tokens, exact ? tensor::DType::kF32 : options.kv_dtype.value_or(tensor::DType::kBF16));
}

}  // namespace

base::Status CheckState(const model::ModelSpec& spec, model::Arithmetic arithmetic, const StateOptions& options, uint64_t free_memory) {
  HB_RETURN_IF_ERROR(PlanState(LayersOf(spec, arithmetic, options), options, spec.max_positions, free_memory));
  return {};
}

base::Result<std::unique_ptr<ModelRunner>> ModelRunner::Create(std::unique_ptr<model::Model> model, const StateOptions& options) {
  std::unique_ptr<ModelRunner> runner(new ModelRunner);
  std::vector<model::LayerState> layers = LayersOf(model->spec(), model->arithmetic(), options);
  HB_ASSIGN_OR_RETURN(runner->traits_.state, PlanState(layers, options, model->spec().max_positions, platform::AvailableMemory()));
  HB_ASSIGN_OR_RETURN(runner->pool_, model::StatePool::Create(model->backend(), std::move(layers), runner->traits_.state.blocks, runner->traits_.state.slots));
  runner->traits_.vocab = model->spec().vocab;
  runner->traits_.max_positions = model->spec().max_positions;
  runner->traits_.eos = model->spec().eos;
  runner->model_ = std::move(model);
  return runner;
}

}  // namespace halfbyte::engine
