// BlockPool: who owns which block of the paged state, and which unowned blocks still hold something worth finding (the prefix cache).
//
// A block is owned (reference count > 0), cached (no owner, content known, in LRU order) or free. Content is named by a chain: the content of
// a sequence's i-th block is (content of block i-1, the tokens of block i), and equal contents get equal ids. Lookups compare tokens, not
// hashes: two prompts can never be confused. Thread-compatible: the engine's thread alone uses it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace halfbyte::engine {

using ContentId = uint64_t;
inline constexpr ContentId kNoContent = 0;  // the parent of a sequence's first block

class BlockPool {
 public:
  explicit BlockPool(int64_t blocks);

  int64_t blocks() const { return static_cast<int64_t>(meta_.size()); }
  int64_t available() const { return available_; }        // free or cached
  int64_t owned() const { return blocks() - available_; }
  int64_t cached() const { return cached_; }

  // A block with one reference: a free one, else the cached one that went unused for longest, whose content is forgotten.
  std::optional<int32_t> Allocate();
  void Retain(int32_t block);
  void Release(int32_t block);
  int64_t references(int32_t block) const { return meta_[static_cast<size_t>(block)].references; }

  // Says what an owned block holds. Where another block holds the same already, that one stays the one to find. Returns the content's id.
  ContentId Publish(int32_t block, ContentId parent, std::span<const int32_t> tokens);

  struct Found {
    int32_t block;
    ContentId content;
  };
  // The block that holds (parent, tokens); not retained.
  std::optional<Found> Find(ContentId parent, std::span<const int32_t> tokens) const;

  // Forgets every content (the weights changed). Owned blocks stay owned; ids given before never match again.
  void Forget();

 private:
  static constexpr int32_t kNone = -1;
  struct Meta {
    int32_t references = 0;
    int32_t previous = kNone, next = kNone;  // neighbours in the LRU list while cached
    ContentId content = kNoContent;          // kNoContent: not to be found
    ContentId parent = kNoContent;
    uint64_t hash = 0;
    std::vector<int32_t> tokens;
  };
  Meta& at(int32_t block) { return meta_[static_cast<size_t>(block)]; }
  uint64_t Hash(ContentId parent, std::span<const int32_t> tokens) const;
  void Unlink(int32_t block);
  void ForgetOne(int32_t block);

  std::vector<Meta> meta_;
  std::vector<int32_t> free_;
  int32_t oldest_ = kNone, newest_ = kNone;  // ends of the LRU list
  int64_t available_ = 0, cached_ = 0;
  ContentId next_content_ = 1;
  uint64_t hash_key_;
  std::unordered_multimap<uint64_t, int32_t> index_;
};

}  // namespace halfbyte::engine
