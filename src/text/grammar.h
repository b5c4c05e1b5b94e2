// Grammar: what an answer may look like, as a recursive transition network over bytes; the common form of regular expressions and JSON schemas.
//
// Expressions are built bottom up in a GrammarBuilder and named by numbers; rules may call each other, so nested values need no depth in the network.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace halfbyte::text {

// The compiled network. A state has byte edges, empty edges and calls; a call enters a rule and goes on at `then` when the rule ends.
struct Grammar {
  struct ByteEdge { uint8_t low, high; int32_t target; };
  struct Call { int32_t rule; int32_t then; };
  struct State {
    std::vector<ByteEdge> bytes;
    std::vector<int32_t> empty;
    std::vector<Call> calls;
    bool end = false;  // of its rule
  };
  std::vector<State> states;
  std::vector<int32_t> starts;  // of each rule; rule 0 is the whole answer
};

class GrammarBuilder {
 public:
  using Expr = int32_t;
  using Rule = int32_t;
  static constexpr int64_t kUnbounded = -1;

  // The network's size is limited because schemas come from clients; maxLength 10^9 must be an answer, not an outage.
  static constexpr size_t kMaxStates = 200'000;

  Expr Empty() { return Sequence({}); }
  Expr Literal(std::string_view bytes);
  Expr ByteRange(uint8_t low, uint8_t high);
  Expr Sequence(std::vector<Expr> parts);
  Expr Choice(std::vector<Expr> alternatives);  // at least one
  Expr Repeat(Expr e, int64_t min, int64_t max = kUnbounded);
  Expr Optional(Expr e) { return Repeat(e, 0, 1); }
  Expr CallRule(Rule rule);

  Rule AddRule();  // rule 0 is the first one added
  void Define(Rule rule, Expr e);

  // kUnsupported where the network grows too large or a rule can begin with itself.
  base::Result<Grammar> Build() const;

 private:
  enum class Kind : uint8_t { kLiteral, kRange, kSequence, kChoice, kRepeat, kCall };
  struct Node {
    Kind kind;
    uint8_t low = 0, high = 0;
    int64_t min = 0, max = 0;
    int32_t rule = 0;
    std::vector<Expr> parts;
    std::vector<uint8_t> bytes;
  };
  Expr Add(Node node);
  bool Compile(Expr e, int32_t from, int32_t to, Grammar& grammar) const;
  bool CompileRepeat(const Node& node, int32_t from, int32_t to, Grammar& grammar) const;

  std::vector<Node> nodes_;
  std::vector<Expr> rules_;
};

}  // namespace halfbyte::text
