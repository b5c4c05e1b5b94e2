#include "engine/sequence_state.h"

#include <algorithm>

#include "base/check.h"

namespace halfbyte::engine {

base::Result<PrefixCache> ParsePrefixCache(std::string_view name) {
  if (name == "off") return PrefixCache::kOff;
  if (name == "on") return PrefixCache::kOn;
  if (name == "generated") return PrefixCache::kGenerated;
  return base::Fail(base::ErrorCode::kInvalidArgument, "\"", name, "\" is no prefix cache mode; on, off and generated are");
}

SequenceStates::SequenceStates(StepRunner& runner, PrefixCache mode)
    : runner_(runner), geometry_(runner.traits().state),
      mode_(geometry_.paged && !geometry_.fixed ? mode : PrefixCache::kOff), pool_(geometry_.paged ? geometry_.blocks : 0) {
  if (geometry_.fixed)
    for (int64_t s = geometry_.slots; s-- > 0;) free_slots_.push_back(static_cast<int32_t>(s));
}

int64_t SequenceStates::Shared(std::span<const int32_t> prompt) const {
  if (mode_ == PrefixCache::kOff) return 0;
  const size_t block = static_cast<size_t>(geometry_.block_tokens);
  ContentId content = kNoContent;
  int64_t shared = 0;
  for (size_t tokens = 0; tokens + block < prompt.size(); tokens += block) {
    const auto found = pool_.Find(content, prompt.subspan(tokens, block));
    if (!found) break;
    content = found->content;
    shared += pool_.references(found->block) > 0;
  }
  return shared;
}

base::Result<bool> SequenceStates::Open(SequenceState& state, std::span<const int32_t> prompt, bool share) {
  HB_CHECK(!state.open, "the sequence is open");
  int32_t slot = -1;
  if (geometry_.fixed) {
    if (free_slots_.empty()) return false;
    slot = free_slots_.back();
    HB_RETURN_IF_ERROR(runner_.ClearSlot(slot));
    free_slots_.pop_back();
  }
  state = {};
  state.open = true;
  state.slot = slot;
  const size_t block = static_cast<size_t>(geometry_.block_tokens);
  while (share && mode_ != PrefixCache::kOff && static_cast<size_t>(state.tokens) + block < prompt.size()) {
    const auto found = pool_.Find(state.content, prompt.subspan(static_cast<size_t>(state.tokens), block));
    if (!found) break;
    pool_.Retain(found->block);
    state.blocks.push_back(found->block);
    state.content = found->content;
    state.tokens += geometry_.block_tokens;
    ++state.published;
  }
  DropBelow(state, state.tokens);
  return true;
}

int64_t SequenceStates::Missing(const SequenceState& state, int64_t tokens) const {
  return std::max<int64_t>(0, geometry_.BlocksFor(tokens) - static_cast<int64_t>(state.blocks.size()));
}

bool SequenceStates::Reserve(SequenceState& state, int64_t tokens) {
  const int64_t missing = Missing(state, tokens);
  if (missing > pool_.available()) return false;
  for (int64_t i = 0; i < missing; ++i) state.blocks.push_back(*pool_.Allocate());
  return true;
}

// The next query stands at position `next`; the widest window shows it keys above next - window.
void SequenceStates::DropBelow(SequenceState& state, int64_t next) {
  if (geometry_.window <= 0 || !geometry_.paged) return;
  const int64_t first_needed = std::max<int64_t>(0, next - geometry_.window + 1) / geometry_.block_tokens;
  for (; state.first_kept < std::min<int64_t>(first_needed, static_cast<int64_t>(state.blocks.size())); ++state.first_kept) {
    int32_t& block = state.blocks[static_cast<size_t>(state.first_kept)];
    pool_.Release(block);
    block = 0;
  }
}

void SequenceStates::Advance(SequenceState& state, int64_t tokens, std::span<const int32_t> ids, int64_t prompt_tokens) {
  HB_CHECK(state.open && tokens >= state.tokens && static_cast<size_t>(tokens) <= ids.size(), tokens, " of ", ids.size());
  state.tokens = tokens;
  if (mode_ != PrefixCache::kOff) {
    const int64_t shareable = mode_ == PrefixCache::kGenerated ? tokens : std::min(tokens, prompt_tokens);
    const int64_t block = geometry_.block_tokens;
    for (; (state.published + 1) * block <= shareable; ++state.published) {
      const auto part = ids.subspan(static_cast<size_t>(state.published * block), static_cast<size_t>(block));
      state.content = pool_.Publish(state.blocks[static_cast<size_t>(state.published)], state.content, part);
    }
  }
  DropBelow(state, tokens);
}

// From the last block to the first, so that of an unused chain the leaves are reused before the roots that lead to them.
void SequenceStates::Close(SequenceState& state) {
  if (!state.open) return;
  for (int64_t i = static_cast<int64_t>(state.blocks.size()); i-- > state.first_kept;) pool_.Release(state.blocks[static_cast<size_t>(i)]);
  if (state.slot >= 0) free_slots_.push_back(state.slot);
  state = {};
}

base::Result<std::optional<SequenceState>> SequenceStates::Fork(const SequenceState& state) {
  HB_CHECK(state.open);
  const int64_t whole = geometry_.paged ? state.tokens / geometry_.block_tokens : 0;
  const bool begun = geometry_.paged && state.tokens % geometry_.block_tokens != 0;
  if ((begun && pool_.available() == 0) || (geometry_.fixed && free_slots_.empty())) return std::nullopt;
  SequenceState copy = state;
  copy.blocks.resize(static_cast<size_t>(whole));
  copy.slot = -1;
  copy.published = std::min(copy.published, whole);
  for (int64_t i = copy.first_kept; i < whole; ++i) pool_.Retain(copy.blocks[static_cast<size_t>(i)]);
  base::Status copied;
  if (begun) {
    copy.blocks.push_back(*pool_.Allocate());
    copied = runner_.CopyBlock(state.blocks[static_cast<size_t>(whole)], copy.blocks.back());
  }
  if (copied && geometry_.fixed) {
    copy.slot = free_slots_.back();
    free_slots_.pop_back();
    copied = runner_.CopySlot(state.slot, copy.slot);
  }
  if (!copied) {
    Close(copy);
    return base::Fail(copied.error());
  }
  return copy;
}

}  // namespace halfbyte::engine
