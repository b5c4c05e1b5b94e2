#include "text/stop_strings.h"

#include <utility>

namespace halfbyte::text {

StopStrings::StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)), nodes_(1) {
  for (size_t i = 0; i < strings_.size(); ++i) {
    if (strings_[i].empty()) continue;
    int32_t node = 0;
    for (char c : strings_[i]) {
      int32_t next = Edge(node, static_cast<unsigned char>(c));
      if (next < 0) {
        next = static_cast<int32_t>(nodes_.size());
        nodes_[static_cast<size_t>(node)].edges.emplace_back(static_cast<unsigned char>(c), next);
        nodes_.push_back(Node{.edges = {}, .fall = 0, .depth = nodes_[static_cast<size_t>(node)].depth + 1});
      }
      node = next;
    }
    if (nodes_[static_cast<size_t>(node)].string < 0) nodes_[static_cast<size_t>(node)].string = static_cast<int32_t>(i);
  }
  // Nodes nearer the root first: `fall` of a node needs that of its parent.
  std::vector<int32_t> order{0};
  for (size_t at = 0; at < order.size(); ++at) {
    int32_t parent = order[at];
    for (auto [byte, child] : nodes_[static_cast<size_t>(parent)].edges) {
      Node& node = nodes_[static_cast<size_t>(child)];
      node.fall = parent == 0 ? 0 : Step(nodes_[static_cast<size_t>(parent)].fall, byte);
      if (node.string < 0) node.string = nodes_[static_cast<size_t>(node.fall)].string;
      order.push_back(child);
    }
  }
}

int32_t StopStrings::Edge(int32_t node, unsigned char byte) const {
  for (auto [label, target] : nodes_[static_cast<size_t>(node)].edges) if (label == byte) return target;
  return -1;
}

int32_t StopStrings::Step(int32_t node, unsigned char byte) const {
  for (;; node = nodes_[static_cast<size_t>(node)].fall) {
    if (int32_t next = Edge(node, byte); next >= 0) return next;
    if (node == 0) return 0;
  }
}

std::string StopStrings::Push(std::string_view text) {
  if (stopped()) return {};
  for (char c : text) {
    held_.push_back(c);
    node_ = Step(node_, static_cast<unsigned char>(c));
    matched_ = nodes_[static_cast<size_t>(node_)].string;
    if (!stopped()) continue;
    held_.resize(held_.size() - strings_[static_cast<size_t>(matched_)].size());
    return std::exchange(held_, {});
  }
  size_t certain = held_.size() - static_cast<size_t>(nodes_[static_cast<size_t>(node_)].depth);
  std::string out = held_.substr(0, certain);
  held_.erase(0, certain);
  return out;
}

std::string StopStrings::Flush() { return std::exchange(held_, {}); }

}  // namespace halfbyte::text
