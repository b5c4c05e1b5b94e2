// x W^T, the one loop behind every linear and expert matrix.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "kernels/reference/activations.h"
#include "kernels/reference/rows.h"
#include "kernels/reference/stored_matrix.h"
#include "platform/parallel.h"

namespace halfbyte::kernels::reference {

// For every n and every i: write(i, n, (x[rows[i]] . W[n]) * its outer scales), in FP64. Called from many threads, each pair once.
// Eight rows of W are decoded together and used for all of x, so that neither is streamed through the cache more often than needed;
// the sums themselves do not depend on that.
template <typename Write>
void Multiply(const Activations& x, std::span<const int64_t> rows, const StoredMatrix& w, Write write) {
  constexpr int64_t kRowsAtOnce = 8;
  HB_CHECK(x.k == w.k(), "x has ", x.k, " columns, W ", w.k());
  if (rows.empty()) return;
  platform::ParallelFor(w.n(), kRowsAtOnce, [&](int64_t begin, int64_t end) {
    std::vector<double> decoded(static_cast<size_t>(kRowsAtOnce * w.k()));
    for (int64_t first = begin; first < end; first += kRowsAtOnce) {
      const int64_t last = std::min(first + kRowsAtOnce, end);
      for (int64_t n = first; n < last; ++n) w.DecodeRow(n, decoded.data() + (n - first) * w.k());
      for (size_t i = 0; i < rows.size(); ++i)
        for (int64_t n = first; n < last; ++n) {
          const double sum = Dot(x.row(rows[i]), decoded.data() + (n - first) * w.k(), w.k());
          write(static_cast<int64_t>(i), n, sum * w.OuterScale(n) * x.scale[rows[i]]);
        }
    }
  });
}

}  // namespace halfbyte::kernels::reference
