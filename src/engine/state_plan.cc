#include "engine/state_plan.h"

#include <algorithm>

namespace halfbyte::engine {

base::Result<StateGeometry> PlanState(const std::vector<model::LayerState>& layers, const StateOptions& options, int64_t max_positions, uint64_t free_memory) {
  StateGeometry g;
  g.block_tokens = options.block_tokens;
  if (g.block_tokens <= 0 || g.block_tokens % 16 != 0)
    return base::Fail(base::ErrorCode::kInvalidArgument, "a cache block of ", g.block_tokens, " tokens: it must be a multiple of 16");
  g.paged = false;
  bool sees_all = false;
  for (const model::LayerState& layer : layers) {
    if (const auto* paged = std::get_if<model::PagedState>(&layer)) {
      g.paged = true;
      sees_all |= paged->window <= 0;
      g.window = std::max(g.window, paged->window);
    } else {
      g.fixed = true;
    }
  }
  if (sees_all) g.window = 0;
  const int64_t sequences = std::max<int64_t>(options.sequences, 1);
  g.slots = g.fixed ? sequences : 0;
  const int64_t slot_bytes = model::StatePool::SlotBytes(layers) * g.slots;
  if (!g.paged) return g;

  const int64_t block_bytes = model::StatePool::BlockBytes(layers);
  const int64_t limit = static_cast<int64_t>(std::min<uint64_t>(free_memory / 2, INT64_MAX)) - slot_bytes;
  const int64_t longest = std::max<int64_t>(options.max_tokens > 0 ? options.max_tokens : max_positions, 1);
  if (options.cache_tokens > 0) {
    g.blocks = g.BlocksFor(options.cache_tokens);
  } else {
    g.blocks = g.BlocksFor(longest);
    if (g.blocks > INT32_MAX / sequences) g.blocks = INT32_MAX / sequences;
    g.blocks = std::min(g.blocks * sequences, std::max<int64_t>(limit / block_bytes, 1));
  }
  if (g.blocks > INT32_MAX) return base::Fail(base::ErrorCode::kInvalidArgument, "a cache of ", g.blocks, " blocks: at most ", INT32_MAX, " can be numbered");
  if (static_cast<uint64_t>(g.blocks) > free_memory / static_cast<uint64_t>(block_bytes)) {
    return base::Fail(base::Error(base::ErrorCode::kOutOfMemory, base::StrCat("a KV cache of ", g.blocks * g.block_tokens, " tokens takes ", g.blocks * block_bytes / 1000000,
                                                                              " MB, ", free_memory / 1000000, " MB are free"))
                          .Hint("lower --kv-cache-tokens, --max-model-len or --max-batch"));
  }
  if (options.cache_tokens == 0 && options.max_tokens > 0 && g.window == 0 && g.blocks < g.BlocksFor(options.max_tokens)) {
    return base::Fail(base::Error(base::ErrorCode::kOutOfMemory, base::StrCat("one sequence of ", options.max_tokens, " tokens takes ", g.BlocksFor(options.max_tokens) * block_bytes / 1000000,
                                                                              " MB of KV cache, half of the free memory is ", free_memory / 2000000, " MB"))
                          .Hint("lower --max-model-len, or give --kv-cache-tokens"));
  }
  return g;
}

}  // namespace halfbyte::engine
