// GrammarAutomaton: a grammar over a vocabulary, determinized as it is used. Which tokens may come next is a bit set per state, kept for states met before.
//
// A state is a set of (place in the network, stack of places to return to). Inside a JSON string nearly every byte leads back to the same state,
// so the walk over the whole trie is table look-ups (about 3 ms for 152k tokens the first time, a copy after that).
// The same automaton serves all requests with the same grammar; its methods lock it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "text/grammar.h"
#include "text/token_trie.h"

namespace halfbyte::text {

class GrammarAutomaton {
 public:
  using StateId = int32_t;
  static constexpr StateId kDead = -1;

  static constexpr int32_t kMaxDepth = 256;        // rules inside rules (two a level of JSON); deeper nesting cannot come
  // Clients choose the grammar, so its states are counted: beyond these numbers (about 200 MB) unknown states are dead, and overflowed() says so.
  static constexpr size_t kMaxStates = 300'000;
  static constexpr size_t kMaxItems = 8'000'000;   // of all states together
  static constexpr size_t kMaxItemsOfState = 2'000;  // an ambiguous expression (.{0,9999}){0,9999} would make every step slow
  static constexpr size_t kMaxMasks = 512;         // kept; V/8 bytes each

  // end_tokens may come where the grammar is complete.
  GrammarAutomaton(Grammar grammar, std::shared_ptr<const TokenTrie> trie, std::vector<int32_t> end_tokens);

  StateId start() const { return start_; }
  // After the bytes of a token (of an end token: the same state). kDead: it may not come here.
  StateId After(StateId state, int32_t token);
  StateId AfterBytes(StateId state, std::string_view bytes);
  bool Complete(StateId state);
  // Bit t % 64 of word t / 64: token t may come. Copied into `mask`.
  void Allowed(StateId state, std::vector<uint64_t>& mask);
  bool overflowed();

 private:
  struct Item {
    int32_t place;  // in the network
    int32_t stack;  // of places to return to, or -1
    friend auto operator<=>(const Item&, const Item&) = default;
  };
  struct StackNode { int32_t place, below, depth; };
  struct State {
    std::vector<Item> items;     // sorted; only places with byte edges
    std::vector<int32_t> next;   // by byte class; kUnknown until asked
    bool complete = false;
    std::shared_ptr<const std::vector<uint64_t>> mask;
  };
  static constexpr int32_t kUnknown = -2;

  void FindByteClasses();
  void FindTails();
  int32_t Push(int32_t place, int32_t below);
  StateId Intern(std::vector<Item> roots);
  StateId Step(StateId state, uint8_t byte);
  std::shared_ptr<const std::vector<uint64_t>> ComputeMask(StateId state);

  Grammar grammar_;
  std::shared_ptr<const TokenTrie> trie_;
  std::vector<int32_t> end_tokens_;
  uint8_t class_of_[256] = {};
  size_t classes_ = 0;
  std::vector<bool> tail_;  // of a place: nothing but the end of its rule follows, so a call that returns there needs no stack

  std::mutex mutex_;  // guards all below
  std::vector<StackNode> stacks_;
  std::unordered_map<uint64_t, int32_t> stack_index_;
  std::deque<State> states_;
  std::unordered_multimap<uint64_t, StateId> state_index_;
  std::deque<StateId> masked_;  // states with a mask, oldest first
  size_t items_ = 0;            // of all states
  bool overflowed_ = false;
  StateId start_ = kDead;
};

// One answer's walk through an automaton.
class GrammarMatcher {
 public:
  explicit GrammarMatcher(std::shared_ptr<GrammarAutomaton> automaton) : automaton_(std::move(automaton)), state_(automaton_->start()) {}
  std::span<const uint64_t> Allowed() { automaton_->Allowed(state_, mask_); return mask_; }
  // false: the token was not allowed; nothing is any more.
  bool Accept(int32_t token) { state_ = automaton_->After(state_, token); return state_ != GrammarAutomaton::kDead; }
  bool complete() { return state_ != GrammarAutomaton::kDead && automaton_->Complete(state_); }

 private:
  std::shared_ptr<GrammarAutomaton> automaton_;
  GrammarAutomaton::StateId state_;
  std::vector<uint64_t> mask_;
};

}  // namespace halfbyte::text
