// The differential kit for Linear.
#include <cmath>
#include <gtest/gtest.h>
#include <iostream>

#include "kernels/reference/reference_backend.h"
#include "platform/parallel.h"
#include "support/backend_compare.h"
#include "support/compare_rows.h"
#include "support/device_data.h"
#include "support/random_data.h"
#include "support/weight_data.h"

namespace halfbyte::test {
namespace {

using kernels::Backend;
using kernels::LinearPart;
using tensor::DType;
using tensor::Format;

// N, K: one block, K not a multiple of 32 or 64, N that fills no tile, more than one 128x128 block with partial edges.
struct Shape {
  int64_t n, k;
};
constexpr Shape kShapes[] = {{1, 16}, {7, 48}, {33, 80}, {64, 64}, {200, 144}, {129, 272}, {48, 1040}};
constexpr int64_t kRows[] = {0, 1, 2, 15, 16, 17, 33};

// Packed in two parts where the format's blocks allow it, as a fused q/k/v or a parallel load would.
std::unique_ptr<kernels::LinearWeight> Pack(Backend& backend, const WeightData& w) {
  auto weight = backend.CreateLinear(w.format, w.n, w.k);
  HB_CHECK(weight.has_value(), weight ? "" : weight.error().ToString());
  const int64_t step = w.format.block_scale ? w.format.block_rows : 1;
  const int64_t middle = w.n / 2 / step * step;
  for (auto [begin, end] : {std::pair{middle, w.n}, {int64_t{0}, middle}})
    if (begin < end) HB_CHECK(backend.PackLinear(**weight, begin, w.Rows(begin, end)).has_value());
  // Dense W4A4 for every other shape; x of about 4 at most fills the range.
  if (w.format.is_nvfp4() && w.n % 2 == 1) (*weight)->SetInputScale(4.0f / 2688);
  return std::move(*weight);
}

struct Case {
  int64_t rows = 0, prompt_rows = 0;
  bool bias = false, accumulate = false;
  DType x = DType::kF32;
};

// y F32 [rows, N] of `backend`; before: what out held.
std::vector<float> Run(Backend& backend, const kernels::LinearWeight& w, const Case& c, std::span<const float> x, const std::vector<float>& bias,
                       std::span<const float> before) {
  DeviceMatrix in(backend, c.x, c.rows, w.k(), x, 8);
  DeviceMatrix out(backend, DType::kF32, c.rows, w.n(), before, 16);
  DeviceArray<float> b(backend, bias);
  const LinearPart part{.weight = &w, .bias = c.bias ? b.data() : nullptr, .out = out.view(), .accumulate = c.accumulate};
  backend.Linear({.x = in.view(), .prompt_rows = c.prompt_rows, .parts = {&part, 1}});
  return out.Read();
}

// (8 + sqrt(K)) u S for every output.
std::vector<double> Bounds(const WeightData& w, const Case& c, std::span<const float> x, const std::vector<float>& bias,
                           std::span<const float> before) {
  std::vector<double> bound;
  for (int64_t t = 0; t < c.rows; ++t)
    for (int64_t n = 0; n < w.n; ++n) {
      double sum = (c.bias ? std::abs(bias[n]) : 0) + (c.accumulate ? std::abs(before[t * w.n + n]) : 0);
      for (int64_t i = 0; i < w.k; ++i) sum += std::abs(x[t * w.k + i] * w.values[n * w.k + i]);
      bound.push_back((8 + std::sqrt(static_cast<double>(w.k))) * kUnit * sum);
    }
  return bound;
}

void CompareOne(Backend& backend, Backend& oracle, const WeightData& w, uint64_t seed) {
  const auto mine = Pack(backend, w), theirs = Pack(oracle, w);
  EXPECT_EQ(mine->n(), w.n);
  EXPECT_EQ(mine->k(), w.k);
  Random random(seed);
  const std::vector<float> bias = random.Normals(w.n);
  for (DType dtype : {DType::kF32, DType::kBF16})
    for (int64_t rows : kRows) {
      Case c{.rows = rows, .prompt_rows = random.Below(rows + 1), .bias = random.Below(2) == 1, .accumulate = random.Below(2) == 1, .x = dtype};
      SCOPED_TRACE(base::StrCat("rows ", rows, ", ", c.prompt_rows, " of them prompt, bias ", c.bias, ", accumulate ", c.accumulate, ", x ",
                                tensor::DTypeName(dtype)));
      std::vector<float> x = AwkwardRows(rows, w.k, seed + static_cast<uint64_t>(rows));
      if (dtype == DType::kBF16)
        for (float& v : x) v = RoundBf16(v);
      const std::vector<float> before = random.Normals(rows * w.n);
      ExpectWithin(Run(backend, *mine, c, x, bias, before), Run(oracle, *theirs, c, x, bias, before), Bounds(w, c, x, bias, before));
    }
}

// Three parts on one x give what each gives alone.
void CheckParts(Backend& backend, const Format& format) {
  std::vector<std::unique_ptr<kernels::LinearWeight>> weights;
  for (int64_t n : {64, 17, 1}) weights.push_back(Pack(backend, RandomWeight(format, n, 80, static_cast<uint64_t>(n))));
  const std::vector<float> x = AwkwardRows(19, 80, 5);
  DeviceMatrix in(backend, DType::kBF16, 19, 80, x);
  std::vector<DeviceMatrix> outs;
  std::vector<LinearPart> parts;
  for (auto& w : weights) outs.emplace_back(backend, DType::kF32, 19, w->n());
  for (size_t i = 0; i < weights.size(); ++i) parts.push_back({.weight = weights[i].get(), .out = outs[i].view()});
  backend.Linear({.x = in.view(), .prompt_rows = 11, .parts = parts});
  for (size_t i = 0; i < weights.size(); ++i) {
    const std::vector<float> zero(static_cast<size_t>(19 * weights[i]->n()));
    ExpectSameBits(outs[i].Read(), Run(backend, *weights[i], {.rows = 19, .prompt_rows = 11, .x = DType::kBF16}, x, {}, zero), "one of several parts");
  }
}

void CheckInvariance(Backend& backend, const kernels::LinearWeight& w, DType dtype) {
  constexpr int64_t kT = 37;
  const int64_t n = w.n(), k = w.k();
  const std::vector<float> x = AwkwardRows(kT, k, 77);
  const auto run = [&](int64_t begin, int64_t end, int64_t prompt) {
    const std::vector<float> zero(static_cast<size_t>((end - begin) * n));
    return Run(backend, w, {.rows = end - begin, .prompt_rows = prompt, .x = dtype}, std::span(x).subspan(begin * k, (end - begin) * k), {}, zero);
  };
  platform::SetThreads(1);
  const std::vector<float> prompt = run(0, kT, kT), generated = run(0, kT, 0);
  for (int threads : {1, 2, 5}) {
    platform::SetThreads(threads);
    SCOPED_TRACE(base::StrCat(threads, " threads"));
    ExpectSameBits(run(0, kT, kT), prompt, "all prompt rows");
    ExpectSameBits(run(0, kT, 0), generated, "all generated rows");
    for (int64_t split : {1, 2, 15, 16, 17, 36}) {
      std::vector<float> want(prompt.begin(), prompt.begin() + split * n);
      want.insert(want.end(), generated.begin() + split * n, generated.end());
      ExpectSameBits(run(0, kT, split), want, base::StrCat("prompt_rows ", split));
    }
    for (auto [begin, end] : {std::pair<int64_t, int64_t>{0, 1}, {3, 4}, {5, 7}, {20, 36}, {20, 37}, {36, 37}}) {
      const std::vector<float> p(prompt.begin() + begin * n, prompt.begin() + end * n), g(generated.begin() + begin * n, generated.begin() + end * n);
      ExpectSameBits(run(begin, end, end - begin), p, base::StrCat("prompt rows ", begin, " to ", end, " alone"));
      ExpectSameBits(run(begin, end, 0), g, base::StrCat("generated rows ", begin, " to ", end, " alone"));
    }
  }
}

// Formats that the backend offers; the others are printed and returned in `skipped`.
std::vector<Format> Offered(Backend& backend, Skipped& skipped) {
  std::vector<Format> formats;
  for (const Format& f : LinearFormats()) {
    if (backend.SupportsLinear(f)) formats.push_back(f);
    else skipped.push_back(f.ToString());
  }
  for (const std::string& s : skipped) std::cout << backend.name() << " does not offer linear layers in " << s << "\n";
  return formats;
}

}  // namespace

Skipped CompareLinear(Backend& backend) {
  const auto oracle = kernels::CreateReferenceBackend({});
  Skipped skipped;
  uint64_t seed = 1;
  for (const Format& format : Offered(backend, skipped)) {
    SCOPED_TRACE(format.ToString());
    for (const Shape& s : kShapes) {
      SCOPED_TRACE(base::StrCat("N ", s.n, ", K ", s.k));
      ++seed;
      CompareOne(backend, *oracle, RandomWeight(format, s.n, s.k, seed), seed);
    }
    CheckParts(backend, format);
  }
  return skipped;
}

Skipped CheckLinearInvariance(Backend& backend) {
  const int threads = platform::Threads();
  Skipped skipped;
  for (const Format& format : Offered(backend, skipped))
    for (const Shape& s : {Shape{33, 80}, Shape{200, 144}, Shape{48, 1040}})
      for (DType dtype : {DType::kF32, DType::kBF16}) {
        SCOPED_TRACE(base::StrCat(format.ToString(), ", N ", s.n, ", K ", s.k, ", x ", tensor::DTypeName(dtype)));
        CheckInvariance(backend, *Pack(backend, RandomWeight(format, s.n, s.k, 9)), dtype);
      }
  platform::SetThreads(threads);
  return skipped;
}

}  // namespace halfbyte::test
