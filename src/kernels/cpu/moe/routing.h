// Routed rows sorted by expert and class, and the work items that cover them.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/api/ops.h"

namespace halfbyte::kernels::cpu::moe {

// The rows of one class that one expert has: positions [begin, begin + rows) of the sorted order.
struct RowGroup {
  int32_t expert = 0;
  bool prompt = false;
  int64_t begin = 0, rows = 0;
};

struct Routing {
  std::vector<RowGroup> groups;       // the largest first
  std::vector<int32_t> token;         // [T*k] sorted position -> row of x
  std::vector<int64_t> position;      // [T*k] t*k + slot -> sorted position
};

void SortRows(const MoeOp& op, Routing& routing);

// Rows of an item at most: 16 blocks of 12, the height of the AVX-512 kernels, and 6 of 32, the height of AMX. Decoding a tile again for the next 192
// rows costs 2 % of its GEMM (a third on AMX); 192 records and their sums fit L2 and L1.
inline constexpr int64_t kMostRows = 192;

// Rows [row_begin, row_end) of a group by tiles [tile_begin, tile_end).
struct Item {
  int32_t group = 0;
  int64_t row_begin = 0, row_end = 0;  // sorted positions
  int64_t tile_begin = 0, tile_end = 0;
};

// Cuts every group into items of about equal cost (rows x tiles, never below one tile; groups of many rows are cut by rows too, so that their
// records stay in L2). Only scheduling depends on `threads`.
void MakeItems(const Routing& routing, int64_t tiles, int threads, std::vector<Item>& items);

}  // namespace halfbyte::kernels::cpu::moe
