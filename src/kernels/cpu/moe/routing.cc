#include "kernels/cpu/moe/routing.h"

#include <algorithm>

#include "base/check.h"

namespace halfbyte::kernels::cpu::moe {
namespace {

constexpr int64_t kRowMultiple = 12;
// Items a thread: the last one to finish is late by at most 1/32 of its share.
constexpr int64_t kItemsPerThread = 32;

}  // namespace

void SortRows(const MoeOp& op, Routing& r) {
  const int64_t experts = op.experts->spec().experts, slots = op.x.rows * op.top_k;
  HB_CHECK(static_cast<int64_t>(op.ids.size()) >= slots && static_cast<int64_t>(op.weights.size()) >= slots, "ids and weights of ", slots, " slots");
  // Counting sort on (class, expert); prompt rows come first.
  std::vector<int64_t> begin(static_cast<size_t>(2 * experts) + 1, 0);
  const int64_t prompt_slots = op.prompt_rows * op.top_k;
  for (int64_t i = 0; i < slots; ++i) {
    HB_CHECK(0 <= op.ids[i] && op.ids[i] < experts, "expert ", op.ids[i], " of ", experts);
    ++begin[(i < prompt_slots ? 0 : experts) + op.ids[i] + 1];
  }
  r.groups.clear();
  for (int64_t b = 0; b < 2 * experts; ++b) {
    const int64_t rows = begin[b + 1];
    begin[b + 1] += begin[b];
    if (rows > 0) r.groups.push_back({static_cast<int32_t>(b % experts), b < experts, begin[b], rows});
  }
  std::stable_sort(r.groups.begin(), r.groups.end(), [](const RowGroup& a, const RowGroup& b) { return a.rows > b.rows; });
  r.token.resize(static_cast<size_t>(slots));
  r.position.resize(static_cast<size_t>(slots));
  for (int64_t i = 0; i < slots; ++i) {
    const int64_t p = begin[(i < prompt_slots ? 0 : experts) + op.ids[i]]++;
    r.token[p] = static_cast<int32_t>(i / op.top_k);
    r.position[i] = p;
  }
}

void MakeItems(const Routing& routing, int64_t tiles, int threads, std::vector<Item>& items) {
  items.clear();
  const int64_t cost = static_cast<int64_t>(routing.token.size()) * tiles;
  const int64_t target = std::max<int64_t>(1, cost / (threads * kItemsPerThread));
  for (size_t g = 0; g < routing.groups.size(); ++g) {
    const RowGroup& group = routing.groups[g];
    const int64_t cuts = (group.rows + kMostRows - 1) / kMostRows;
    const int64_t height = (group.rows + cuts * kRowMultiple - 1) / (cuts * kRowMultiple) * kRowMultiple;
    for (int64_t r = 0; r < group.rows; r += height) {
      const int64_t rows = std::min(height, group.rows - r);
      const int64_t width = std::clamp<int64_t>(target / rows, 1, tiles);
      for (int64_t t = 0; t < tiles; t += width) {
        items.push_back({static_cast<int32_t>(g), group.begin + r, group.begin + r + rows, t, std::min(t + width, tiles)});
      }
    }
  }
}

}  // namespace halfbyte::kernels::cpu::moe
