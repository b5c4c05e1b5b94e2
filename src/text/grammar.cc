#include "text/grammar.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace halfbyte::text {
namespace {

int32_t NewState(Grammar& g) {
  g.states.emplace_back();
  return static_cast<int32_t>(g.states.size() - 1);
}

Grammar::State& At(Grammar& g, int32_t s) { return g.states[static_cast<size_t>(s)]; }
const Grammar::State& At(const Grammar& g, int32_t s) { return g.states[static_cast<size_t>(s)]; }

// States that a rule reaches before its first byte, where nullable rules may be skipped. `seen` holds for each state the last round that met it.
std::vector<int32_t> Beginning(const Grammar& g, int32_t start, const std::vector<bool>& nullable, std::vector<uint32_t>& seen, uint32_t round) {
  std::vector<int32_t> reached;
  const auto add = [&](int32_t s) {
    if (std::exchange(seen[static_cast<size_t>(s)], round) != round) reached.push_back(s);
  };
  add(start);
  for (size_t i = 0; i < reached.size(); ++i) {
    const Grammar::State& state = At(g, reached[i]);
    for (const int32_t s : state.empty) add(s);
    for (const Grammar::Call& c : state.calls)
      if (nullable[static_cast<size_t>(c.rule)]) add(c.then);
  }
  return reached;
}

// Whether some rule can call itself before a byte was read: following it would never end.
bool LeftRecursive(const Grammar& g) {
  const size_t n = g.starts.size();
  std::vector<bool> nullable(n);
  std::vector<std::vector<int32_t>> beginnings(n);
  std::vector<uint32_t> seen(g.states.size());
  uint32_t round = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t r = 0; r < n; ++r) {
      beginnings[r] = Beginning(g, g.starts[r], nullable, seen, ++round);
      const bool ends = std::any_of(beginnings[r].begin(), beginnings[r].end(), [&](int32_t s) { return At(g, s).end; });
      if (ends && !nullable[r]) nullable[r] = changed = true;
    }
  }
  // Depth-first over "rule r begins with a call of rule s", without recursion of our own: clients choose the depth.
  enum : uint8_t { kNew, kOpen, kDone };
  std::vector<uint8_t> mark(n, kNew);
  std::vector<std::vector<int32_t>> next(n);
  for (size_t r = 0; r < n; ++r)
    for (const int32_t s : beginnings[r])
      for (const Grammar::Call& c : At(g, s).calls) next[r].push_back(c.rule);
  for (size_t root = 0; root < n; ++root) {
    if (mark[root] != kNew) continue;
    std::vector<std::pair<size_t, size_t>> path = {{root, 0}};
    mark[root] = kOpen;
    while (!path.empty()) {
      auto& [rule, edge] = path.back();
      if (edge == next[rule].size()) { mark[rule] = kDone; path.pop_back(); continue; }
      const size_t to = static_cast<size_t>(next[rule][edge++]);
      if (mark[to] == kOpen) return true;
      if (mark[to] == kNew) { mark[to] = kOpen; path.emplace_back(to, 0); }
    }
  }
  return false;
}

}  // namespace

GrammarBuilder::Expr GrammarBuilder::Add(Node node) {
  nodes_.push_back(std::move(node));
  return static_cast<Expr>(nodes_.size() - 1);
}

GrammarBuilder::Expr GrammarBuilder::Literal(std::string_view bytes) {
  Node n{Kind::kLiteral};
  n.bytes.assign(bytes.begin(), bytes.end());
  return Add(std::move(n));
}

GrammarBuilder::Expr GrammarBuilder::ByteRange(uint8_t low, uint8_t high) {
  HB_CHECK(low <= high);
  Node n{Kind::kRange};
  n.low = low;
  n.high = high;
  return Add(std::move(n));
}

GrammarBuilder::Expr GrammarBuilder::Sequence(std::vector<Expr> parts) {
  Node n{Kind::kSequence};
  n.parts = std::move(parts);
  return Add(std::move(n));
}

GrammarBuilder::Expr GrammarBuilder::Choice(std::vector<Expr> alternatives) {
  HB_CHECK(!alternatives.empty(), "a choice of nothing");
  Node n{Kind::kChoice};
  n.parts = std::move(alternatives);
  return Add(std::move(n));
}

GrammarBuilder::Expr GrammarBuilder::Repeat(Expr e, int64_t min, int64_t max) {
  HB_CHECK(min >= 0 && (max == kUnbounded || max >= min), "repeat ", min, " to ", max);
  Node n{Kind::kRepeat};
  n.parts = {e};
  n.min = min;
  n.max = max;
  return Add(std::move(n));
}

GrammarBuilder::Expr GrammarBuilder::CallRule(Rule rule) {
  Node n{Kind::kCall};
  n.rule = rule;
  return Add(std::move(n));
}

GrammarBuilder::Rule GrammarBuilder::AddRule() {
  rules_.push_back(-1);
  return static_cast<Rule>(rules_.size() - 1);
}

void GrammarBuilder::Define(Rule rule, Expr e) { rules_[static_cast<size_t>(rule)] = e; }

// Adds the expression between two states; false where the network is too large.
bool GrammarBuilder::Compile(Expr e, int32_t from, int32_t to, Grammar& g) const {
  if (g.states.size() > kMaxStates) return false;
  const Node& node = nodes_[static_cast<size_t>(e)];
  switch (node.kind) {
    case Kind::kRange:
      At(g, from).bytes.push_back({node.low, node.high, to});
      return true;
    case Kind::kCall:
      At(g, from).calls.push_back({node.rule, to});
      return true;
    case Kind::kLiteral: {
      int32_t at = from;
      for (const uint8_t b : node.bytes) {
        const int32_t next = NewState(g);
        At(g, at).bytes.push_back({b, b, next});
        at = next;
      }
      At(g, at).empty.push_back(to);
      return true;
    }
    case Kind::kSequence: {
      int32_t at = from;
      for (const Expr part : node.parts) {
        const int32_t next = NewState(g);
        if (!Compile(part, at, next, g)) return false;
        at = next;
      }
      At(g, at).empty.push_back(to);
      return true;
    }
    case Kind::kChoice:
      for (const Expr part : node.parts) {
        const int32_t begin = NewState(g);
        At(g, from).empty.push_back(begin);
        if (!Compile(part, begin, to, g)) return false;
      }
      return true;
    case Kind::kRepeat:
      return CompileRepeat(node, from, to, g);
  }
  return false;
}

bool GrammarBuilder::CompileRepeat(const Node& node, int32_t from, int32_t to, Grammar& g) const {
  int32_t at = from;
  const int64_t copies = node.max == kUnbounded ? node.min : node.max;
  for (int64_t i = 0; i < copies; ++i) {
    if (i >= node.min) At(g, at).empty.push_back(to);
    const int32_t next = NewState(g);
    if (!Compile(node.parts[0], at, next, g)) return false;
    at = next;
  }
  if (node.max == kUnbounded) {
    // A state of its own for the loop: `at` may have edges that lead around it.
    const int32_t loop = NewState(g), body = NewState(g);
    At(g, at).empty.push_back(loop);
    At(g, loop).empty.push_back(body);
    if (!Compile(node.parts[0], body, loop, g)) return false;
    at = loop;
  }
  At(g, at).empty.push_back(to);
  return true;
}

base::Result<Grammar> GrammarBuilder::Build() const {
  HB_CHECK(!rules_.empty());
  Grammar g;
  for (size_t r = 0; r < rules_.size(); ++r) {
    HB_CHECK(rules_[r] >= 0, "rule ", r, " is not defined");
    const int32_t start = NewState(g), end = NewState(g);
    At(g, end).end = true;
    g.starts.push_back(start);
    if (!Compile(rules_[r], start, end, g))
      return base::Fail(base::ErrorCode::kUnsupported, "the structure asked for is too large: more than ", kMaxStates, " states");
  }
  if (LeftRecursive(g)) return base::Fail(base::ErrorCode::kUnsupported, "the structure asked for refers to itself without anything before it");
  return g;
}

}  // namespace halfbyte::text
