#include "text/token_trie.h"

#include <algorithm>
#include <numeric>

namespace halfbyte::text {
namespace {

constexpr size_t kLongest = 4096;  // a token longer than this is left out; the longest known ones have some hundred bytes

}  // namespace

TokenTrie::TokenTrie(const std::vector<std::string>& bytes) : bytes_(bytes), same_(bytes.size(), -1) {
  std::vector<int32_t> order(bytes.size());
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](int32_t t) { return bytes_[static_cast<size_t>(t)].empty() || bytes_[static_cast<size_t>(t)].size() > kLongest; });
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const int c = bytes_[static_cast<size_t>(a)].compare(bytes_[static_cast<size_t>(b)]);
    return c != 0 ? c < 0 : a < b;
  });
  // In sorted order a token shares a path with the one before it; `open` holds that path's nodes.
  std::vector<uint32_t> open;
  const std::string* before = nullptr;
  const auto close_to = [&](size_t depth) {
    for (; open.size() > depth; open.pop_back()) nodes_[open.back()].subtree_end = static_cast<uint32_t>(nodes_.size());
  };
  for (const int32_t t : order) {
    const std::string& b = bytes_[static_cast<size_t>(t)];
    const size_t shared = before ? static_cast<size_t>(std::mismatch(b.begin(), b.end(), before->begin(), before->end()).first - b.begin()) : 0;
    if (before && shared == b.size() && shared == before->size()) {
      int32_t last = nodes_[open.back()].token;
      while (same_[static_cast<size_t>(last)] >= 0) last = same_[static_cast<size_t>(last)];
      same_[static_cast<size_t>(last)] = t;
      continue;
    }
    close_to(shared);
    for (size_t d = shared; d < b.size(); ++d) {
      open.push_back(static_cast<uint32_t>(nodes_.size()));
      nodes_.push_back({-1, 0, static_cast<uint16_t>(d), static_cast<uint8_t>(b[d])});
    }
    nodes_[open.back()].token = t;
    max_depth_ = std::max(max_depth_, static_cast<int64_t>(b.size()));
    before = &b;
  }
  close_to(0);
}

}  // namespace halfbyte::text
