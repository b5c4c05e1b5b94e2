// The tokens of a model: text to id and id to text, each in one step.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace halfbyte::text {

// Eight bytes at a time, multiplied and folded: good enough for tables whose keys a hostile file may choose, because a lookup compares
// the whole key and a crowded table only gets slow (tokenizer files are trusted like weights are).
inline uint64_t HashBytes(std::string_view s) {
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15u;  // 2^64 / golden ratio
  uint64_t h = s.size() * kMultiplier;
  const char* p = s.data();
  size_t n = s.size();
  auto mix = [&h](uint64_t word) {
    h = (h ^ word) * kMultiplier;
    h ^= h >> 32;
  };
  for (; n >= 8; p += 8, n -= 8) { uint64_t word; std::memcpy(&word, p, 8); mix(word); }
  if (n > 0) { uint64_t word = 0; std::memcpy(&word, p, n); mix(word); }
  return h ^ h >> 29;
}

class Vocabulary {
 public:
  // The largest id that is accepted; published vocabularies end at about 262,144.
  static constexpr int32_t kMaxId = (1 << 22) - 1;

  void Reserve(size_t tokens, size_t bytes);
  // A text given twice keeps its first id and the call returns false. An id given twice stands for the later text.
  bool Add(std::string_view token, int32_t id);

  int32_t Find(std::string_view token) const;    // -1 where it is no token
  std::string_view Token(int32_t id) const;      // empty where no token has the id
  bool Has(int32_t id) const { return id >= 0 && static_cast<size_t>(id) < by_id_.size() && by_id_[static_cast<size_t>(id)] >= 0; }
  int32_t size() const { return static_cast<int32_t>(by_id_.size()); }  // highest id + 1
  size_t count() const { return entries_.size(); }

 private:
  struct Entry { uint64_t hash; uint32_t offset, length; int32_t id; };
  void Grow(size_t slots);
  std::string_view Text(const Entry& e) const { return std::string_view(arena_).substr(e.offset, e.length); }

  std::string arena_;             // all texts, one after another
  std::vector<Entry> entries_;    // in the order of Add
  std::vector<int32_t> by_id_;    // entry of an id, or -1
  std::vector<uint32_t> slots_;   // open addressing over entries_: index + 1, 0 is free
};

}  // namespace halfbyte::text
