#include "text/grammar_automaton.h"

#include <algorithm>
#include <set>

namespace halfbyte::text {
namespace {

uint64_t Mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9E3779B97F4A7C15;
  return h ^ (h >> 29);
}

}  // namespace

GrammarAutomaton::GrammarAutomaton(Grammar grammar, std::shared_ptr<const TokenTrie> trie, std::vector<int32_t> end_tokens)
    : grammar_(std::move(grammar)), trie_(std::move(trie)), end_tokens_(std::move(end_tokens)) {
  FindByteClasses();
  FindTails();
  start_ = Intern({{grammar_.starts[0], -1}});
}

// Bytes that no edge tells apart share a class, so that a state's table is some thirty entries instead of 256.
void GrammarAutomaton::FindByteClasses() {
  std::set<int> borders;
  for (const Grammar::State& s : grammar_.states) {
    for (const Grammar::ByteEdge& e : s.bytes) {
      borders.insert(e.low);
      borders.insert(e.high + 1);
    }
  }
  for (int b = 0; b < 256; ++b) {
    if (b > 0 && borders.contains(b)) ++classes_;
    class_of_[b] = static_cast<uint8_t>(classes_);
  }
  ++classes_;
}

void GrammarAutomaton::FindTails() {
  tail_.resize(grammar_.states.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < tail_.size(); ++i) {
      const Grammar::State& s = grammar_.states[i];
      if (tail_[i] || !s.bytes.empty() || !s.calls.empty()) continue;
      const bool tail = s.end ? s.empty.empty() : s.empty.size() == 1 && tail_[static_cast<size_t>(s.empty[0])];
      if (tail) tail_[i] = changed = true;
    }
  }
}

int32_t GrammarAutomaton::Push(int32_t place, int32_t below) {
  const uint64_t key = (static_cast<uint64_t>(static_cast<uint32_t>(place)) << 32) | static_cast<uint32_t>(below);
  const auto [it, is_new] = stack_index_.emplace(key, static_cast<int32_t>(stacks_.size()));
  if (is_new) stacks_.push_back({place, below, below < 0 ? 1 : stacks_[static_cast<size_t>(below)].depth + 1});
  return it->second;
}

// Follows empty edges, calls and ends of rules from `roots`; the set of places where a byte is read is the state.
GrammarAutomaton::StateId GrammarAutomaton::Intern(std::vector<Item> roots) {
  std::set<Item> seen(roots.begin(), roots.end());
  State state;
  const auto add = [&](Item item) { if (seen.insert(item).second) roots.push_back(item); };
  for (size_t i = 0; i < roots.size(); ++i) {
    if (state.items.size() > kMaxItemsOfState || roots.size() > 8 * kMaxItemsOfState) {
      overflowed_ = true;
      return kDead;
    }
    const Item item = roots[i];
    const Grammar::State& place = grammar_.states[static_cast<size_t>(item.place)];
    if (!place.bytes.empty()) state.items.push_back(item);
    for (const int32_t to : place.empty) add({to, item.stack});
    for (const Grammar::Call& c : place.calls) {
      const int32_t start = grammar_.starts[static_cast<size_t>(c.rule)];
      if (tail_[static_cast<size_t>(c.then)]) { add({start, item.stack}); continue; }
      if (item.stack >= 0 && stacks_[static_cast<size_t>(item.stack)].depth >= kMaxDepth) continue;
      add({start, Push(c.then, item.stack)});
    }
    if (!place.end) continue;
    if (item.stack < 0) {
      state.complete = true;
    } else {
      const StackNode top = stacks_[static_cast<size_t>(item.stack)];
      add({top.place, top.below});
    }
  }
  if (state.items.empty() && !state.complete) return kDead;
  std::sort(state.items.begin(), state.items.end());
  uint64_t hash = state.complete;
  for (const Item& item : state.items) hash = Mix(Mix(hash, static_cast<uint32_t>(item.place)), static_cast<uint32_t>(item.stack));
  const auto [begin, end] = state_index_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const State& other = states_[static_cast<size_t>(it->second)];
    if (other.complete == state.complete && other.items == state.items) return it->second;
  }
  if (states_.size() >= kMaxStates || items_ + state.items.size() > kMaxItems) {
    overflowed_ = true;
    return kDead;
  }
  items_ += state.items.size();
  state.next.assign(classes_, kUnknown);
  states_.push_back(std::move(state));
  const StateId id = static_cast<StateId>(states_.size() - 1);
  state_index_.emplace(hash, id);
  return id;
}

GrammarAutomaton::StateId GrammarAutomaton::Step(StateId id, uint8_t byte) {
  State& state = states_[static_cast<size_t>(id)];
  int32_t& next = state.next[class_of_[byte]];
  if (next != kUnknown) return next;
  std::vector<Item> roots;
  for (const Item& item : state.items)
    for (const Grammar::ByteEdge& e : grammar_.states[static_cast<size_t>(item.place)].bytes)
      if (e.low <= byte && byte <= e.high) roots.push_back({e.target, item.stack});
  std::sort(roots.begin(), roots.end());
  roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
  return next = roots.empty() ? kDead : Intern(std::move(roots));  // a deque: `next` stays where it is
}

GrammarAutomaton::StateId GrammarAutomaton::AfterBytes(StateId state, std::string_view bytes) {
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < bytes.size() && state != kDead; ++i) state = Step(state, static_cast<uint8_t>(bytes[i]));
  return state;
}

GrammarAutomaton::StateId GrammarAutomaton::After(StateId state, int32_t token) {
  if (state == kDead || token < 0 || token >= trie_->vocab()) return kDead;
  const bool end = std::find(end_tokens_.begin(), end_tokens_.end(), token) != end_tokens_.end();
  if (end) return Complete(state) ? state : kDead;
  return trie_->bytes(token).empty() ? kDead : AfterBytes(state, trie_->bytes(token));
}

bool GrammarAutomaton::Complete(StateId state) {
  std::lock_guard lock(mutex_);
  return states_[static_cast<size_t>(state)].complete;
}

bool GrammarAutomaton::overflowed() {
  std::lock_guard lock(mutex_);
  return overflowed_;
}

std::shared_ptr<const std::vector<uint64_t>> GrammarAutomaton::ComputeMask(StateId state) {
  auto mask = std::make_shared<std::vector<uint64_t>>(static_cast<size_t>((trie_->vocab() + 63) / 64));
  const auto set = [&](int32_t token) { (*mask)[static_cast<size_t>(token) / 64] |= uint64_t{1} << (token % 64); };
  const std::vector<TokenTrie::Node>& nodes = trie_->nodes();
  std::vector<StateId> path(static_cast<size_t>(trie_->max_depth()) + 1);
  path[0] = state;
  for (size_t i = 0; i < nodes.size();) {
    const TokenTrie::Node& node = nodes[i];
    const StateId next = Step(path[node.depth], node.byte);
    if (next == kDead) { i = node.subtree_end; continue; }
    path[static_cast<size_t>(node.depth) + 1] = next;
    for (int32_t t = node.token; t >= 0; t = trie_->same(t)) set(t);
    ++i;
  }
  const bool complete = states_[static_cast<size_t>(state)].complete;
  for (const int32_t t : end_tokens_) {
    if (t < 0 || t >= trie_->vocab()) continue;
    if (complete) set(t);
    else (*mask)[static_cast<size_t>(t) / 64] &= ~(uint64_t{1} << (t % 64));
  }
  return mask;
}

void GrammarAutomaton::Allowed(StateId state, std::vector<uint64_t>& mask) {
  std::lock_guard lock(mutex_);
  if (state == kDead) {
    mask.assign(static_cast<size_t>((trie_->vocab() + 63) / 64), 0);
    return;
  }
  if (!states_[static_cast<size_t>(state)].mask) {
    auto computed = ComputeMask(state);
    if (masked_.size() >= kMaxMasks) {
      states_[static_cast<size_t>(masked_.front())].mask.reset();
      masked_.pop_front();
    }
    states_[static_cast<size_t>(state)].mask = std::move(computed);
    masked_.push_back(state);
  }
  mask = *states_[static_cast<size_t>(state)].mask;
}

}  // namespace halfbyte::text
