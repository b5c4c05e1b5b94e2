// TokenTrie: every token of a vocabulary by its bytes, in preorder, so that all tokens that an automaton accepts are found in one pass that
// skips whole subtrees.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace halfbyte::text {

class TokenTrie {
 public:
  // bytes[t]: what token t stands for (Tokenizer::TokenBytes); empty: never matched (special tokens, unused ids).
  explicit TokenTrie(const std::vector<std::string>& bytes);

  struct Node {
    int32_t token = -1;        // ends here; further tokens with the same bytes through `same`
    uint32_t subtree_end = 0;  // index of the first node that is not below this one
    uint16_t depth = 0;        // of its byte in the token, from 0
    uint8_t byte = 0;
  };
  const std::vector<Node>& nodes() const { return nodes_; }  // preorder, without a root
  int32_t same(int32_t token) const { return same_[static_cast<size_t>(token)]; }
  int64_t vocab() const { return static_cast<int64_t>(same_.size()); }
  const std::string& bytes(int32_t token) const { return bytes_[static_cast<size_t>(token)]; }
  int64_t max_depth() const { return max_depth_; }

 private:
  std::vector<std::string> bytes_;
  std::vector<Node> nodes_;
  std::vector<int32_t> same_;  // next token with the same bytes, or -1
  int64_t max_depth_ = 0;
};

}  // namespace halfbyte::text
