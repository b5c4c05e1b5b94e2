// The routed experts of a layer by each expert kernel: rows of each class, with even, skewed and single routing.
#include <algorithm>
#include <random>

#include "base/check.h"
#include "kernel_bench.h"
#include "kernel_bench_data.h"
#include "platform/parallel.h"

namespace halfbyte::app {
namespace {

using kernels::ExpertPart;

// A last bit of a sum that moves a value of h to its other BF16 neighbour (2^-8) now and then: 2.5e-5 was measured.
constexpr double kRounded = 2e-4;

struct Shape {
  int64_t d, f, experts, top_k;
};

struct Routed {
  std::vector<int32_t> ids;
  int64_t touched = 0;
};

// even: every token picks its experts at random; skewed: half of the slots go to an eighth of the experts; one: all tokens pick the same.
Routed Route(const Shape& s, const std::string& routing, int64_t tokens, std::mt19937& rng) {
  Routed r;
  std::vector<char> used(static_cast<size_t>(s.experts));
  std::vector<int32_t> picked;
  for (int64_t t = 0; t < tokens; ++t) {
    if (routing != "one" || t == 0) picked.clear();
    while (static_cast<int64_t>(picked.size()) < s.top_k) {
      auto e = static_cast<int32_t>(rng() % static_cast<uint64_t>(s.experts));
      if (routing == "skewed" && rng() % 2 == 0) e %= std::max<int32_t>(1, static_cast<int32_t>(s.experts / 8));
      if (std::find(picked.begin(), picked.end(), e) == picked.end()) picked.push_back(e);
    }
    for (int32_t e : picked) {
      r.ids.push_back(e);
      r.touched += !used[static_cast<size_t>(e)];
      used[static_cast<size_t>(e)] = 1;
    }
  }
  return r;
}

std::unique_ptr<kernels::ExpertsWeight> MakeExperts(kernels::Backend& backend, const Shape& s, const kernels::CpuKernel& k) {
  kernels::ExpertsSpec spec{.experts = s.experts, .d = s.d, .f = s.f, .activations = k.activations, .round_hidden = k.rows == kernels::DType::kBF16};
  spec.formats.assign(static_cast<size_t>(s.experts), {k.weight, k.weight, k.weight});
  auto made = backend.CreateExperts(std::move(spec));
  HB_CHECK(made.has_value(), made ? "" : made.error().ToString());
  platform::ParallelFor(s.experts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t e = begin; e < end; ++e)
      for (const ExpertPart part : {ExpertPart::kGate, ExpertPart::kUp, ExpertPart::kDown}) {
        const bool down = part == ExpertPart::kDown;
        const RandomMatrix m(k.weight, down ? s.d : s.f, down ? s.f : s.d, static_cast<uint32_t>(e * 3) + static_cast<uint32_t>(part));
        HB_CHECK(backend.PackExpert(**made, e, part, m.view()).has_value());
      }
  });
  return std::move(*made);
}

std::vector<float> Run(kernels::Backend& backend, const kernels::ExpertsWeight& experts, const RandomRows& x, int64_t rows, int64_t top_k, const std::vector<int32_t>& ids,
                       bool prompt) {
  std::vector<float> out(static_cast<size_t>(rows * x.cols())), weights(ids.size(), 1.0f / static_cast<float>(top_k));
  kernels::MoeOp op{.x = x.Matrix(rows), .prompt_rows = prompt ? rows : 0, .experts = &experts, .top_k = top_k, .ids = ids, .weights = weights,
                    .out = kernels::MutableMatrix(out.data(), kernels::DType::kF32, rows, x.cols())};
  backend.Moe(op);
  return out;
}

}  // namespace

void BenchMoeKernel(KernelBench& bench, const kernels::CpuKernel& k) {
  const auto& o = bench.options();
  const Shape s{o.shape[0], o.shape[1], o.shape[2], o.shape[3]};
  const std::unique_ptr<kernels::Backend> backend = bench.BackendWith(k);
  const RandomRows x(512, s.d, k.rows, 1);
  {  // Few experts are enough to tell right from wrong, and reference is slow. 33 rows: more than any kernel takes at once.
    const Shape few{s.d, s.f, std::min<int64_t>(s.experts, 4), std::min<int64_t>(s.top_k, 2)};
    const auto mine = MakeExperts(*backend, few, k), theirs = MakeExperts(bench.reference(), few, k);
    std::mt19937 rng(3);
    for (const int64_t rows : {1, 33}) {
      const Routed r = Route(few, "even", rows, rng);
      const auto want = Run(bench.reference(), *theirs, x, rows, few.top_k, r.ids, true);
      for (const bool prompt : {false, true})
        bench.Check(base::StrCat(rows, rows == 1 ? " row, " : " rows, ", prompt ? "prompt" : "generated"), Run(*backend, *mine, x, rows, few.top_k, r.ids, prompt), want,
                    kRounded);
    }
  }
  if (o.check_only) return;

  std::vector<std::unique_ptr<kernels::ExpertsWeight>> layers;
  for (int64_t bytes = 0; bytes < kColdBytes; bytes += layers.back()->bytes()) layers.push_back(MakeExperts(*backend, s, k));
  const double expert_bytes = static_cast<double>(layers[0]->bytes()) / static_cast<double>(s.experts);
  for (const char* routing : {"even", "skewed", "one"})
    for (const int64_t rows : {1, 2, 4, 8, 16, 64, 512}) {
      std::mt19937 rng(7);
      std::vector<Routed> calls;
      double touched = 0;
      for (int i = 0; i < 8; ++i) {
        calls.push_back(Route(s, routing, rows, rng));
        touched += static_cast<double>(calls.back().touched) / 8;
      }
      const bool prompt = rows >= 64;
      std::vector<float> out(static_cast<size_t>(rows * s.d)), weights(static_cast<size_t>(rows * s.top_k), 0.125f);
      KernelCase c;
      c.what = base::StrCat(rows, prompt ? " prompt" : " generated", ", ", routing);
      c.bytes = touched * expert_bytes;
      c.flop = 6.0 * static_cast<double>(s.d * s.f * s.top_k * rows);
      c.peak = k.activations != kernels::ActivationForm::kPlain ? Peak::kInt8 : k.rows == kernels::DType::kF32 ? Peak::kF32 : Peak::kBf16;
      c.run = [&](int64_t i) {
        kernels::MoeOp op{.x = x.Matrix(rows), .prompt_rows = prompt ? rows : 0, .experts = layers[static_cast<size_t>(i) % layers.size()].get(), .top_k = s.top_k,
                          .ids = calls[static_cast<size_t>(i) % calls.size()].ids, .weights = weights,
                          .out = kernels::MutableMatrix(out.data(), kernels::DType::kF32, rows, s.d)};
        backend->Moe(op);
      };
      bench.Measure(c);
    }
}

}  // namespace halfbyte::app
