#include "text/bpe.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <functional>

#include "text/byte_level.h"
#include "text/unicode.h"

namespace halfbyte::text {
namespace {
constexpr std::string_view kMetaspace = "\u2581";

bool FollowsMetaspace(std::string_view text, size_t at) {
  return at >= kMetaspace.size() && text.substr(at - kMetaspace.size(), kMetaspace.size()) == kMetaspace;
}

}  // namespace

bool WordCache::Find(std::string_view word, uint64_t hash, std::vector<int32_t>& out) const {
  const Slot& slot = slots_[hash & (kSlots - 1)];
  if (slot.length != word.size() || std::memcmp(slot.word, word.data(), word.size()) != 0) return false;
  out.insert(out.end(), slot.ids, slot.ids + slot.count);
  return true;
}

void WordCache::Store(std::string_view word, uint64_t hash, const int32_t* ids, size_t count) {
  if (count > kMostIds) return;
  Slot& slot = slots_[hash & (kSlots - 1)];
  slot.length = static_cast<uint8_t>(word.size());
  slot.count = static_cast<uint8_t>(count);
  std::memcpy(slot.word, word.data(), word.size());
  std::copy(ids, ids + count, slot.ids);
}

Bpe::Bpe(Vocabulary vocabulary, Options options) : vocabulary_(std::move(vocabulary)), options_(std::move(options)) {
  plain_symbols_ = options_.continuing_subword_prefix.empty() && options_.end_of_word_suffix.empty();
  for (int b = 0; b < 256; ++b) {
    std::string character;
    AppendUtf8(character, ByteToChar(static_cast<unsigned char>(b)));
    char fallback[8];
    std::snprintf(fallback, sizeof fallback, "<0x%02X>", static_cast<unsigned>(b));
    byte_ids_[static_cast<size_t>(b)] = vocabulary_.Find(character);
    fallback_ids_[static_cast<size_t>(b)] = vocabulary_.Find(fallback);
  }
}

void Bpe::ReserveMerges(size_t count) {
  size_t slots = std::bit_ceil(std::max<size_t>(count * 2, 2));
  if (slots <= merges_.size()) return;
  std::vector<MergeSlot> old(slots);
  old.swap(merges_);
  merge_shift_ = 64 - std::countr_zero(slots);
  for (const MergeSlot& m : old) {
    if (m.pair == kFree) continue;
    size_t at = SlotOf(m.pair);
    while (merges_[at].pair != kFree) at = (at + 1) & (merges_.size() - 1);
    merges_[at] = m;
  }
}

base::Status Bpe::AddMerge(std::string_view left, std::string_view right) {
  int32_t a = vocabulary_.Find(left), b = vocabulary_.Find(right);
  auto missing = [&](std::string_view token) {
    return base::Fail(base::ErrorCode::kBadFile, "merge ", next_rank_, " needs the token \"", token,
                      "\", which is not in the vocabulary");
  };
  if (a < 0) return missing(left);
  if (b < 0) return missing(right);
  if (right.size() < options_.continuing_subword_prefix.size()) return missing(right);
  std::string_view rest = right.substr(options_.continuing_subword_prefix.size());
  char joined[256];
  std::string long_joined;
  std::string_view both;
  if (left.size() + rest.size() <= sizeof joined) {
    std::copy(left.begin(), left.end(), joined);
    std::copy(rest.begin(), rest.end(), joined + left.size());
    both = {joined, left.size() + rest.size()};
  } else {
    both = long_joined = base::StrCat(left, rest);
  }
  int32_t id = vocabulary_.Find(both);
  if (id < 0) return missing(both);

  if ((stored_merges_ + 1) * 2 > merges_.size()) ReserveMerges(stored_merges_ * 2 + 1);
  uint64_t pair = Pair(a, b);
  size_t at = SlotOf(pair);
  while (merges_[at].pair != kFree && merges_[at].pair != pair) at = (at + 1) & (merges_.size() - 1);
  if (merges_[at].pair == kFree) ++stored_merges_;
  merges_[at] = {pair, {next_rank_++, id}};
  return {};
}

// SentencePiece models have no pre-tokenizer: a whole document is one piece. Where no merged token holds a U+2581 after another
// character, nothing is ever merged across the start of a word, so words can be encoded (and remembered) one by one with the same ids.
void Bpe::Finish() {
  split_at_metaspace_ = !options_.bytes && !options_.ignore_merges && plain_symbols_ && vocabulary_.Find(kMetaspace) >= 0;
  for (const MergeSlot& m : merges_) {
    if (!split_at_metaspace_) return;
    if (m.pair == kFree) continue;
    std::string_view token = vocabulary_.Token(m.merge.id);
    for (size_t at = token.find(kMetaspace, 1); at != token.npos; at = token.find(kMetaspace, at + 1))
      if (!FollowsMetaspace(token, at)) split_at_metaspace_ = false;
  }
}

void Bpe::Encode(std::string_view piece, BpeScratch& scratch, std::vector<int32_t>& out) const {
  if (!split_at_metaspace_) return EncodeWord(piece, scratch, out);
  size_t begin = 0;
  for (size_t at = piece.find(kMetaspace, 1); at != piece.npos; at = piece.find(kMetaspace, at + kMetaspace.size())) {
    if (FollowsMetaspace(piece, at)) continue;  // a run of U+2581 stays together
    EncodeWord(piece.substr(begin, at - begin), scratch, out);
    begin = at;
  }
  EncodeWord(piece.substr(begin), scratch, out);
}

void Bpe::EncodeWord(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& out) const {
  if (word.empty()) return;
  if (word.size() > WordCache::kLongestWord) return EncodeUncached(word, scratch, out);
  uint64_t hash = HashBytes(word);
  if (scratch.cache.Find(word, hash, out)) return;
  size_t before = out.size();
  EncodeUncached(word, scratch, out);
  scratch.cache.Store(word, hash, out.data() + before, out.size() - before);
}

void Bpe::EncodeUncached(std::string_view word, BpeScratch& scratch, std::vector<int32_t>& out) const {
  if (options_.ignore_merges) {
    int32_t whole = vocabulary_.Find(options_.bytes ? std::string_view(BytesToChars(word)) : word);
    if (whole >= 0) { out.push_back(whole); return; }
  }
  std::vector<int32_t>& symbols = scratch.symbols;
  symbols.clear();
  if (!options_.bytes) CharacterSymbols(word, symbols);
  else if (!plain_symbols_ || !ByteSymbols(word, symbols)) { symbols.clear(); CharacterSymbols(BytesToChars(word), symbols); }

  if (symbols.size() > kShortPiece) MergeLong(scratch);
  else symbols.resize(MergeShort(symbols.data(), symbols.size()));
  out.insert(out.end(), symbols.begin(), symbols.end());
}

// False where a byte's character is no token.
bool Bpe::ByteSymbols(std::string_view word, std::vector<int32_t>& symbols) const {
  for (char c : word) {
    int32_t id = byte_ids_[static_cast<unsigned char>(c)];
    if (id < 0) return false;
    symbols.push_back(id);
  }
  return true;
}

void Bpe::CharacterSymbols(std::string_view word, std::vector<int32_t>& symbols) const {
  // The reference writes a run of unknown characters when the next known one comes; byte tokens in between come before it.
  bool unknown_waits = false;
  std::string decorated;
  for (size_t at = 0; at < word.size();) {
    size_t size = DecodeValid(word.data() + at).size;
    std::string_view character = word.substr(at, size);
    bool first = at == 0, last = at + size == word.size();
    at += size;
    if (!plain_symbols_) {
      decorated.clear();
      if (!first) decorated += options_.continuing_subword_prefix;
      decorated += character;
      if (last) decorated += options_.end_of_word_suffix;
      character = decorated;
    }
    if (int32_t id = vocabulary_.Find(character); id >= 0) {
      if (unknown_waits) symbols.push_back(options_.unknown_id);
      unknown_waits = false;
      symbols.push_back(id);
      continue;
    }
    if (options_.byte_fallback && AppendByteTokens(character, symbols)) continue;
    if (options_.unknown_id < 0) continue;
    if (unknown_waits && !options_.fuse_unknown) symbols.push_back(options_.unknown_id);
    unknown_waits = true;
  }
  if (unknown_waits) symbols.push_back(options_.unknown_id);
}

bool Bpe::AppendByteTokens(std::string_view character, std::vector<int32_t>& symbols) const {
  size_t before = symbols.size();
  for (char c : character) {
    int32_t id = fallback_ids_[static_cast<unsigned char>(c)];
    if (id < 0) { symbols.resize(before); return false; }
    symbols.push_back(id);
  }
  return true;
}

size_t Bpe::MergeShort(int32_t* ids, size_t count) const {
  Merge merges[kShortPiece];  // merges[i] joins ids[i] and ids[i + 1]
  for (size_t i = 0; i + 1 < count; ++i) merges[i] = FindMerge(ids[i], ids[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) if (merges[i].rank < merges[best].rank) best = i;
    if (merges[best].rank == kNoMerge.rank) break;
    ids[best] = merges[best].id;
    std::copy(ids + best + 2, ids + count, ids + best + 1);
    if (best + 2 < count) std::copy(merges + best + 2, merges + count - 1, merges + best + 1);
    --count;
    if (best > 0) merges[best - 1] = FindMerge(ids[best - 1], ids[best]);
    if (best + 1 < count) merges[best] = FindMerge(ids[best], ids[best + 1]);
  }
  return count;
}

// The symbols form a linked list; the heap holds (rank << 32 | position of the left symbol). An entry is stale when the pair at its
// position has another rank by now (ranks name pairs) or its symbol is gone.
void Bpe::MergeLong(BpeScratch& scratch) const {
  std::vector<int32_t>&symbols = scratch.symbols, &next = scratch.next, &previous = scratch.previous;
  std::vector<uint64_t>& heap = scratch.heap;
  int32_t count = static_cast<int32_t>(symbols.size());
  next.resize(symbols.size());
  previous.resize(symbols.size());
  heap.clear();
  auto entry = [](Merge m, int32_t at) { return static_cast<uint64_t>(m.rank) << 32 | static_cast<uint32_t>(at); };
  for (int32_t i = 0; i < count; ++i) {
    next[static_cast<size_t>(i)] = i + 1;
    previous[static_cast<size_t>(i)] = i - 1;
    if (i + 1 == count) break;
    Merge m = FindMerge(symbols[static_cast<size_t>(i)], symbols[static_cast<size_t>(i) + 1]);
    if (m.rank != kNoMerge.rank) heap.push_back(entry(m, i));
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  auto consider = [&](int32_t left, int32_t right) {
    Merge m = FindMerge(symbols[static_cast<size_t>(left)], symbols[static_cast<size_t>(right)]);
    if (m.rank == kNoMerge.rank) return;
    heap.push_back(entry(m, left));
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  constexpr int32_t kGone = -1;
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    uint64_t top = heap.back();
    heap.pop_back();
    size_t at = top & 0xFFFFFFFFu;
    if (symbols[at] == kGone || next[at] == count) continue;
    size_t right = static_cast<size_t>(next[at]);
    Merge m = FindMerge(symbols[at], symbols[right]);
    if (m.rank != top >> 32) continue;
    symbols[at] = m.id;
    symbols[right] = kGone;
    next[at] = next[right];
    if (next[at] != count) {
      previous[static_cast<size_t>(next[at])] = static_cast<int32_t>(at);
      consider(static_cast<int32_t>(at), next[at]);
    }
    if (previous[at] >= 0) consider(previous[at], static_cast<int32_t>(at));
  }
  symbols.erase(std::remove(symbols.begin(), symbols.end(), kGone), symbols.end());
}

}  // namespace halfbyte::text
