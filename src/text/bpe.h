// Byte-pair encoding: a piece of text becomes symbols (characters, or bytes in byte-level models), then the adjacent pair with the
// lowest rank is merged until no pair is in the list; equal ranks go from left to right.
//
// A merge costs one look-up in a flat table (pair of ids -> rank, merged id). Pieces of up to kShortPiece symbols are merged by looking
// for the lowest rank in an array, which needs no heap and no allocation and wins for words; longer ones use a heap, so that a piece of
// a megabyte takes O(n log n). Encoded words are remembered in a WordCache.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/vocabulary.h"

namespace halfbyte::text {

// Words seen before and their ids, for one caller at a time. Direct-mapped with a fixed size: nothing to evict, nothing to lock.
class WordCache {
 public:
  static constexpr size_t kLongestWord = 30, kMostIds = 8, kSlots = 1 << 15;  // 2 MiB, about an L2 cache

  bool Find(std::string_view word, uint64_t hash, std::vector<int32_t>& out) const;
  void Store(std::string_view word, uint64_t hash, const int32_t* ids, size_t count);

 private:
  struct alignas(64) Slot { uint8_t length = 0, count = 0; char word[kLongestWord]; int32_t ids[kMostIds]; };
  static_assert(sizeof(Slot) == 64);
  std::vector<Slot> slots_ = std::vector<Slot>(kSlots);
};

// What Encode needs beside the model; reused from call to call, one caller at a time.
struct BpeScratch {
  WordCache cache;
  std::vector<int32_t> symbols, next, previous;
  std::vector<uint64_t> heap;
};

class Bpe {
 public:
  struct Options {
    std::string unknown;                    // the token for characters without one; empty: such characters vanish
    int32_t unknown_id = -1;                // its id
    std::string continuing_subword_prefix;  // "##": before every symbol of a piece but the first
    std::string end_of_word_suffix;         // "</w>": after the last symbol of a piece
    bool fuse_unknown = false;              // neighbouring unknown characters give one token
    bool byte_fallback = false;             // an unknown character becomes its bytes <0xE4><0xBD><0xA0> where these tokens exist
    bool ignore_merges = false;             // a piece that is a token as a whole is that token
    bool bytes = false;                     // pieces are raw bytes; the vocabulary writes them in the byte-level alphabet
  };

  Bpe() = default;
  Bpe(Vocabulary vocabulary, Options options);

  void ReserveMerges(size_t count);
  // The next merge, in the order of their ranks. A pair given again takes the later rank, as in the reference.
  base::Status AddMerge(std::string_view left, std::string_view right);
  // After the last merge.
  void Finish();

  // Appends the ids of one piece. Thread-safe with a scratch of one's own.
  void Encode(std::string_view piece, BpeScratch& scratch, std::vector<int32_t>& out) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  static constexpr size_t kShortPiece = 48;
  static constexpr uint64_t kFree = ~uint64_t{0};
  struct Merge { uint32_t rank; int32_t id; };
  struct MergeSlot { uint64_t pair = kFree; Merge merge{}; };
  static constexpr Merge kNoMerge{UINT32_MAX, -1};

  static uint64_t Pair(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  size_t SlotOf(uint64_t pair) const { return static_cast<size_t>(pair * 0x9E3779B97F4A7C15u >> merge_shift_); }
  Merge FindMerge(int32_t left, int32_t right) const {
    uint64_t pair = Pair(left, right);
    for (size_t at = SlotOf(pair);; at = (at + 1) & (merges_.size() - 1)) {
      if (merges_[at].pair == pair) return merges_[at].merge;
      if (merges_[at].pair == kFree) return kNoMerge;
    }
  }

  void EncodeWord(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& out) const;
  void EncodeUncached(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& out) const;
  bool ByteSymbols(std::string_view word, std::vector<int32_t>& symbols) const;
  void CharacterSymbols(std::string_view word, std::vector<int32_t>& symbols) const;
  bool AppendByteTokens(std::string_view character, std::vector<int32_t>& symbols) const;
  size_t MergeShort(int32_t* ids, size_t count) const;
  void MergeLong(BpeScratch& scratch) const;

  Vocabulary vocabulary_;
  Options options_;
  std::vector<MergeSlot> merges_ = std::vector<MergeSlot>(2);  // open addressing
  int merge_shift_ = 63;
  uint32_t next_rank_ = 0;
  size_t stored_merges_ = 0;
  std::array<int32_t, 256> byte_ids_{};      // with options_.bytes: id of each byte's character, or -1
  std::array<int32_t, 256> fallback_ids_{};  // with options_.byte_fallback: id of <0xXX>, or -1
  bool plain_symbols_ = true;                // neither prefix nor suffix
  bool split_at_metaspace_ = false;          // no merge joins a character with a following U+2581, see Finish
};

}  // namespace halfbyte::text
