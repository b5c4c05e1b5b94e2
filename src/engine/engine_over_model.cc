// Apart from engine.cc, so that tests over a made-up runner link no model.
#include "engine/engine.h"
#include "engine/model_runner.h"

namespace halfbyte::engine {

base::Result<std::unique_ptr<Engine>> Engine::Create(std::unique_ptr<model::Model> model, const EngineOptions& options) {
  StateOptions state{.block_tokens = options.block_tokens, .sequences = options.max_batch, .max_tokens = options.max_model_len, .cache_tokens = options.kv_cache_tokens, .kv_dtype = options.kv_dtype};
  HB_ASSIGN_OR_RETURN(std::unique_ptr<StepRunner> runner, ModelRunner::Create(std::move(model), state));
  return Create(std::move(runner), options);
}

}  // namespace halfbyte::engine
