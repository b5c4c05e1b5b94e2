// Structured output inside the engine: a text::GrammarMatcher as a request's TokenConstraint.
#pragma once

#include <memory>

#include "engine/request.h"
#include "text/grammar_automaton.h"

namespace halfbyte::engine {

class GrammarConstraint : public TokenConstraint {
 public:
  explicit GrammarConstraint(std::shared_ptr<text::GrammarAutomaton> automaton) : matcher_(std::move(automaton)) {}
  std::span<const uint64_t> Allowed() override { return matcher_.Allowed(); }
  void Accept(int32_t token) override { matcher_.Accept(token); }

 private:
  text::GrammarMatcher matcher_;
};

}  // namespace halfbyte::engine
