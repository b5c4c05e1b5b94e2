#include "engine/block_pool.h"

#include <algorithm>
#include <random>

#include "base/check.h"

namespace halfbyte::engine {

// The key is random so that nobody can prepare prompts that all fall into one bucket of the index.
BlockPool::BlockPool(int64_t blocks) : meta_(static_cast<size_t>(blocks)), available_(blocks), hash_key_((uint64_t{std::random_device{}()} << 32) | std::random_device{}()) {
  free_.reserve(meta_.size());
  for (int64_t b = blocks; b-- > 0;) free_.push_back(static_cast<int32_t>(b));
}

std::optional<int32_t> BlockPool::Allocate() {
  int32_t block;
  if (!free_.empty()) {
    block = free_.back();
    free_.pop_back();
  } else if (oldest_ != kNone) {
    block = oldest_;
    Unlink(block);
    ForgetOne(block);
  } else {
    return std::nullopt;
  }
  --available_;
  at(block).references = 1;
  return block;
}

void BlockPool::Retain(int32_t block) {
  Meta& m = at(block);
  if (m.references++ > 0) return;
  HB_CHECK(m.content != kNoContent, "block ", block, " is free and cannot be retained");
  Unlink(block);
  --available_;
}

void BlockPool::Release(int32_t block) {
  Meta& m = at(block);
  HB_CHECK(m.references > 0, "block ", block, " has no owner");
  if (--m.references > 0) return;
  ++available_;
  if (m.content == kNoContent) {
    free_.push_back(block);
    return;
  }
  m.previous = newest_;
  m.next = kNone;
  (newest_ == kNone ? oldest_ : at(newest_).next) = block;
  newest_ = block;
  ++cached_;
}

void BlockPool::Unlink(int32_t block) {
  Meta& m = at(block);
  (m.previous == kNone ? oldest_ : at(m.previous).next) = m.next;
  (m.next == kNone ? newest_ : at(m.next).previous) = m.previous;
  m.previous = m.next = kNone;
  --cached_;
}

void BlockPool::ForgetOne(int32_t block) {
  Meta& m = at(block);
  const auto [begin, end] = index_.equal_range(m.hash);
  const auto it = std::find_if(begin, end, [&](const auto& entry) { return entry.second == block; });
  HB_CHECK(it != end, "block ", block, " is not in the index");
  index_.erase(it);
  m.content = kNoContent;
  m.tokens.clear();
}

uint64_t BlockPool::Hash(ContentId parent, std::span<const int32_t> tokens) const {
  uint64_t h = hash_key_ ^ parent;
  const auto mix = [&h](uint64_t v) {  // the finalizer of splitmix64
    h = (h ^ v) + 0x9E3779B97F4A7C15;
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9;
    h = (h ^ (h >> 27)) * 0x94D049BB133111EB;
    h ^= h >> 31;
  };
  for (const int32_t t : tokens) mix(static_cast<uint32_t>(t));
  return h;
}

std::optional<BlockPool::Found> BlockPool::Find(ContentId parent, std::span<const int32_t> tokens) const {
  const auto [begin, end] = index_.equal_range(Hash(parent, tokens));
  for (auto it = begin; it != end; ++it) {
    const Meta& m = meta_[static_cast<size_t>(it->second)];
    if (m.parent == parent && std::equal(m.tokens.begin(), m.tokens.end(), tokens.begin(), tokens.end())) return Found{it->second, m.content};
  }
  return std::nullopt;
}

ContentId BlockPool::Publish(int32_t block, ContentId parent, std::span<const int32_t> tokens) {
  Meta& m = at(block);
  HB_CHECK(m.references > 0 && m.content == kNoContent, "block ", block, " has no owner or is published already");
  if (const auto found = Find(parent, tokens)) return found->content;
  m.content = next_content_++;
  m.parent = parent;
  m.hash = Hash(parent, tokens);
  m.tokens.assign(tokens.begin(), tokens.end());
  index_.emplace(m.hash, block);
  return m.content;
}

void BlockPool::Forget() {
  while (oldest_ != kNone) {
    const int32_t block = oldest_;
    Unlink(block);
    free_.push_back(block);
  }
  index_.clear();
  for (Meta& m : meta_) {
    m.content = kNoContent;
    m.tokens.clear();
  }
}

}  // namespace halfbyte::engine
