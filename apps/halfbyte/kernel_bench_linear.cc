// Dense products by each linear kernel: q, k and v together, o, and the head of the shape.
#include <algorithm>

#include "base/check.h"
#include "kernel_bench.h"
#include "kernel_bench_data.h"

namespace halfbyte::app {
namespace {

std::unique_ptr<kernels::LinearWeight> MakeWeight(kernels::Backend& backend, const kernels::CpuKernel& k, int64_t n, int64_t cols, uint32_t seed) {
  auto made = backend.CreateLinear(k.weight, n, cols);
  HB_CHECK(made.has_value(), made ? "" : made.error().ToString());
  constexpr int64_t kRows = 256;  // a part, packed over and over with another one's values: making them is slower than reading them
  for (int64_t row = 0; row < n; row += kRows)
    HB_CHECK(backend.PackLinear(**made, row, RandomMatrix(k.weight, std::min(kRows, n - row), cols, seed + static_cast<uint32_t>(row / kRows % 4)).view()).has_value());
  return std::move(*made);
}

std::vector<float> Run(kernels::Backend& backend, const kernels::LinearWeight& w, const RandomRows& x, int64_t rows, bool prompt) {
  std::vector<float> out(static_cast<size_t>(rows * w.n()));
  const kernels::LinearPart part{&w, nullptr, kernels::MutableMatrix(out.data(), kernels::DType::kF32, rows, w.n()), false};
  backend.Linear({x.Matrix(rows), prompt ? rows : 0, {&part, 1}});
  return out;
}

}  // namespace

void BenchLinearKernel(KernelBench& bench, const kernels::CpuKernel& k) {
  const auto& o = bench.options();
  const int64_t d = o.shape[0];
  const std::unique_ptr<kernels::Backend> backend = bench.BackendWith(k);
  struct Product {
    const char* name;
    int64_t n, k;
  };
  const Product products[] = {{"qkv", d * 5 / 2, d}, {"o", d, d * 2}, {"lm_head", 32768, d}};
  {
    const RandomRows x(33, d, k.rows, 1);
    const auto mine = MakeWeight(*backend, k, 500, d, 5), theirs = MakeWeight(bench.reference(), k, 500, d, 5);
    for (const int64_t rows : {1, 33}) {
      const auto want = Run(bench.reference(), *theirs, x, rows, true);
      for (const bool prompt : {false, true})
        bench.Check(base::StrCat(rows, rows == 1 ? " row, " : " rows, ", prompt ? "prompt" : "generated"), Run(*backend, *mine, x, rows, prompt), want, 1e-5);
    }
  }
  if (o.check_only) return;
  for (const Product& p : products) {
    std::vector<std::unique_ptr<kernels::LinearWeight>> weights;
    for (int64_t bytes = 0; bytes < kColdBytes; bytes += weights.back()->bytes()) weights.push_back(MakeWeight(*backend, k, p.n, p.k, 9));
    const RandomRows x(512, p.k, k.rows, 1);
    for (const int64_t rows : {1, 2, 4, 8, 16, 64, 512}) {
      const bool prompt = rows >= 64;
      std::vector<float> out(static_cast<size_t>(rows * p.n));
      KernelCase c;
      c.what = base::StrCat(p.name, " ", p.n, "x", p.k, ", ", rows, prompt ? " prompt" : " generated");
      c.bytes = static_cast<double>(weights[0]->bytes());
      c.flop = 2.0 * static_cast<double>(rows * p.n * p.k);
      c.peak = k.rows == kernels::DType::kF32 ? Peak::kF32 : Peak::kBf16;
      c.run = [&](int64_t i) {
        const kernels::LinearPart part{weights[static_cast<size_t>(i) % weights.size()].get(), nullptr, kernels::MutableMatrix(out.data(), kernels::DType::kF32, rows, p.n), false};
        backend->Linear({x.Matrix(rows), prompt ? rows : 0, {&part, 1}});
      };
      bench.Measure(c);
    }
  }
}

}  // namespace halfbyte::app
