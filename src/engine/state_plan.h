// How many blocks and slots an engine gets.
#pragma once

#include <optional>
#include <vector>

#include "engine/step_runner.h"

namespace halfbyte::engine {

struct StateOptions {
  int64_t block_tokens = 16;      // a multiple of 16
  int64_t sequences = 1;          // that will be open at once
  int64_t max_tokens = 0;         // of one sequence; 0: the model's max_positions, or what the memory allows where that is less
  int64_t cache_tokens = 0;       // of the paged state, all sequences together; 0: sequences * max_tokens, at most half of the memory that is free now
  std::optional<tensor::DType> kv_dtype;  // BF16 or F8_E4M3; unset: BF16. The exact arithmetic keeps F32 always
};

// The counts that follow from the layers, the options and the free memory.
base::Result<StateGeometry> PlanState(const std::vector<model::LayerState>& layers, const StateOptions& options, int64_t max_positions, uint64_t free_memory);

}  // namespace halfbyte::engine
