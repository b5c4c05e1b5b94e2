// SequenceState: the blocks and the slot that one sequence owns; SequenceStates hands them out and takes them back.
//
// Blocks of a sequence are listed by position: entry i holds positions [i * block_tokens, (i+1) * block_tokens), the same in every paged layer.
// A block that no layer's window reaches any more is given back; its entry then names block 0, which kernels may read but never use.
//
// Prefix cache: whole blocks of a prompt are shared between sequences, by reference. Only blocks of prompt rows are (kOn), since rows of generated tokens are
// computed in another order and would not be bitwise the same; kGenerated shares those too. Models with a fixed-size state share nothing: a slot holds
// the state after the last position, not after each block.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/block_pool.h"
#include "engine/step_runner.h"

namespace halfbyte::engine {

enum class PrefixCache : uint8_t { kOff, kOn, kGenerated };
// "off", "on", "generated"
base::Result<PrefixCache> ParsePrefixCache(std::string_view name);

struct SequenceState {
  std::vector<int32_t> blocks;
  int64_t first_kept = 0;  // entries below were given back
  int32_t slot = -1;
  int64_t tokens = 0;      // positions [0, tokens) are in the pool
  // Prefix cache: the content of block `published` - 1.
  int64_t published = 0;
  ContentId content = kNoContent;
  bool open = false;       // Open succeeded, Close was not called
};

class SequenceStates {
 public:
  // `runner` is borrowed and clears and copies memory.
  SequenceStates(StepRunner& runner, PrefixCache mode);

  const StateGeometry& geometry() const { return geometry_; }
  const BlockPool& pool() const { return pool_; }
  PrefixCache mode() const { return mode_; }
  int64_t free_slots() const { return static_cast<int64_t>(free_slots_.size()); }

  // Starts a sequence with a cleared slot (where the model has them) and the cached blocks of its prompt: state.tokens says how many positions are
  // there already, always fewer than the prompt has, since the last one's logits are needed. false: no slot is free, nothing changed.
  // `share` = false starts from nothing (every row's logits are wanted).
  base::Result<bool> Open(SequenceState& state, std::span<const int32_t> prompt, bool share = true);

  // Blocks that Open would share with a sequence that is open now: they cost nothing. Cached blocks without an owner do.
  int64_t Shared(std::span<const int32_t> prompt) const;

  // Makes room for positions [0, tokens). false: not enough blocks, nothing changed.
  bool Reserve(SequenceState& state, int64_t tokens);
  // Blocks that Reserve would take from the pool.
  int64_t Missing(const SequenceState& state, int64_t tokens) const;

  // A step has written positions up to `tokens`. `ids` are the sequence's tokens (at least `tokens` of them), the first `prompt_tokens` prompt rows.
  // Publishes whole blocks and gives back those out of every window.
  void Advance(SequenceState& state, int64_t tokens, std::span<const int32_t> ids, int64_t prompt_tokens);

  void Close(SequenceState& state);

  // A second sequence with the same past: whole blocks are shared, a block begun and the slot are copied. nullopt: no room, nothing changed.
  base::Result<std::optional<SequenceState>> Fork(const SequenceState& state);

  // Forgets every cached content; sequences that are open must be closed and computed anew (new weights).
  void Forget() { pool_.Forget(); }

 private:
  void DropBelow(SequenceState& state, int64_t next);

  StepRunner& runner_;
  StateGeometry geometry_;
  PrefixCache mode_;
  BlockPool pool_;
  std::vector<int32_t> free_slots_;
};

}  // namespace halfbyte::engine
