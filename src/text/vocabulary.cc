#include "text/vocabulary.h"

#include <bit>

namespace halfbyte::text {

void Vocabulary::Reserve(size_t tokens, size_t bytes) {
  arena_.reserve(bytes);
  entries_.reserve(tokens);
  by_id_.reserve(tokens);
  Grow(std::bit_ceil(tokens * 2 + 16));
}

void Vocabulary::Grow(size_t slots) {
  if (slots <= slots_.size()) return;
  slots_.assign(slots, 0);
  for (size_t i = 0; i < entries_.size(); ++i) {
    size_t at = entries_[i].hash & (slots - 1);
    while (slots_[at] != 0) at = (at + 1) & (slots - 1);
    slots_[at] = static_cast<uint32_t>(i + 1);
  }
}

bool Vocabulary::Add(std::string_view token, int32_t id) {
  if ((entries_.size() + 1) * 2 > slots_.size()) Grow(slots_.empty() ? 64 : slots_.size() * 2);
  uint64_t hash = HashBytes(token);
  size_t mask = slots_.size() - 1, at = hash & mask;
  for (; slots_[at] != 0; at = (at + 1) & mask) {
    const Entry& e = entries_[slots_[at] - 1];
    if (e.hash == hash && Text(e) == token) return false;
  }
  slots_[at] = static_cast<uint32_t>(entries_.size() + 1);
  entries_.push_back({hash, static_cast<uint32_t>(arena_.size()), static_cast<uint32_t>(token.size()), id});
  arena_ += token;
  if (static_cast<size_t>(id) >= by_id_.size()) by_id_.resize(static_cast<size_t>(id) + 1, -1);
  by_id_[static_cast<size_t>(id)] = static_cast<int32_t>(entries_.size() - 1);
  return true;
}

int32_t Vocabulary::Find(std::string_view token) const {
  if (slots_.empty()) return -1;
  uint64_t hash = HashBytes(token);
  size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask; slots_[at] != 0; at = (at + 1) & mask) {
    const Entry& e = entries_[slots_[at] - 1];
    if (e.hash == hash && Text(e) == token) return e.id;
  }
  return -1;
}

std::string_view Vocabulary::Token(int32_t id) const {
  return Has(id) ? Text(entries_[static_cast<size_t>(by_id_[static_cast<size_t>(id)])]) : std::string_view();
}

}  // namespace halfbyte::text
