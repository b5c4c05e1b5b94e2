// The differential kit for norms, SwiGLU, routing, gated addition, embedding and row selection.
#include <cmath>
#include <functional>
#include <gtest/gtest.h>

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
using tensor::DType;

constexpr int64_t kRows[] = {0, 1, 15, 16, 17, 33};
constexpr int64_t kCols[] = {1, 16, 48, 80, 1040};

// units * u * magnitude, and one unit of BF16 where the output is BF16.
std::vector<double> Bounds(const std::vector<float>& want, const std::vector<double>& magnitude, double units, DType out) {
  std::vector<double> bound(want.size());
  for (size_t i = 0; i < want.size(); ++i)
    bound[i] = units * kUnit * magnitude[i] + (out == DType::kBF16 ? std::abs(static_cast<double>(want[i])) / 128 : 0);
  return bound;
}
std::vector<double> Magnitudes(const std::vector<float>& v) {
  std::vector<double> out;
  for (float x : v) out.push_back(std::abs(static_cast<double>(x)));
  return out;
}

// One op as a function of rows [begin, end) of made-up input; the output, and the bound for it given the oracle's output.
struct RowOp {
  std::string name;
  std::function<std::vector<float>(Backend&, int64_t begin, int64_t end)> run;
  std::function<std::vector<double>(const std::vector<float>& want)> bound;
};

std::vector<float> Slice(const std::vector<float>& m, int64_t begin, int64_t end, int64_t cols) {
  return std::vector<float>(m.begin() + begin * cols, m.begin() + end * cols);
}

RowOp Norm(int64_t rows, int64_t cols, DType out, bool plus_one) {
  const auto x = AwkwardRows(rows, cols, 11), w = Random(12).Normals(cols);
  const auto run = [=](Backend& backend, int64_t begin, int64_t end) {
    DeviceMatrix in(backend, DType::kF32, end - begin, cols, Slice(x, begin, end, cols), 8), result(backend, out, end - begin, cols, 16);
    DeviceArray<float> weight(backend, w);
    backend.RmsNorm({.x = in.view(), .weight = weight.data(), .eps = 1e-6f, .plus_one = plus_one, .out = result.view()});
    return result.Read();
  };
  const double units = 8 + std::sqrt(static_cast<double>(cols));
  return {base::StrCat("RmsNorm to ", tensor::DTypeName(out), plus_one ? ", 1 + w" : ""), run,
          [=](const std::vector<float>& want) { return Bounds(want, Magnitudes(want), units, out); }};
}

RowOp SiluMul(int64_t rows, int64_t cols, DType out) {
  const auto gate = AwkwardRows(rows, cols, 13), up = AwkwardRows(rows, cols, 14);
  const auto run = [=](Backend& backend, int64_t begin, int64_t end) {
    DeviceMatrix g(backend, DType::kF32, end - begin, cols, Slice(gate, begin, end, cols), 8), u(backend, DType::kF32, end - begin, cols, Slice(up, begin, end, cols));
    DeviceMatrix result(backend, out, end - begin, cols, 16);
    backend.SiluMul({.gate = g.view(), .up = u.view(), .out = result.view()});
    return result.Read();
  };
  return {base::StrCat("SiluMul to ", tensor::DTypeName(out)), run, [=](const std::vector<float>& want) { return Bounds(want, Magnitudes(want), 32, out); }};
}

RowOp AddGated(int64_t rows, int64_t cols, bool gated) {
  const auto y = AwkwardRows(rows, cols, 15), before = Random(16).Normals(rows * cols), gate = AwkwardRows(rows, 1, 17);
  const auto run = [=](Backend& backend, int64_t begin, int64_t end) {
    DeviceMatrix in(backend, DType::kF32, end - begin, cols, Slice(y, begin, end, cols), 8), g(backend, DType::kF32, end - begin, 1, Slice(gate, begin, end, 1), 3);
    DeviceMatrix out(backend, DType::kF32, end - begin, cols, Slice(before, begin, end, cols), 16);
    backend.AddGated({.y = in.view(), .gate = gated ? tensor::Matrix(g.view()) : tensor::Matrix(), .out = out.view()});
    return out.Read();
  };
  return {gated ? "AddGated" : "AddGated without a gate", run, [=](const std::vector<float>& want) {
            std::vector<double> magnitude = Magnitudes(before);
            for (size_t i = 0; i < magnitude.size(); ++i) magnitude[i] += std::abs(static_cast<double>(y[i]));
            return Bounds(want, magnitude, 16, DType::kF32);
          }};
}

void CompareRowOp(Backend& backend, Backend& oracle, const RowOp& op, int64_t rows, int64_t cols) {
  SCOPED_TRACE(base::StrCat(op.name, ", ", rows, " rows of ", cols));
  const std::vector<float> got = op.run(backend, 0, rows), want = op.run(oracle, 0, rows);
  ExpectWithin(got, want, op.bound(want));
  for (int threads : {1, 2, 5}) {
    platform::SetThreads(threads);
    ExpectSameBits(op.run(backend, 0, rows), got, base::StrCat(threads, " threads"));
    for (auto [begin, end] : {std::pair<int64_t, int64_t>{0, 1}, {3, 4}, {5, 15}, {16, 33}})
      if (end <= rows) ExpectSameBits(op.run(backend, begin, end), Slice(got, begin, end, cols), base::StrCat("rows ", begin, " to ", end, " alone"));
  }
}

struct Routed {
  std::vector<int32_t> ids;
  std::vector<float> weights;
};

Routed RunRoute(Backend& backend, int64_t rows, int64_t experts, const std::vector<float>& logits, int64_t top_k, bool normalize, float scaling) {
  DeviceMatrix in(backend, DType::kF32, rows, experts, logits, 4);
  DeviceArray<int32_t> ids(backend, std::vector<int32_t>(static_cast<size_t>(rows * top_k), -1));
  DeviceArray<float> weights(backend, std::vector<float>(static_cast<size_t>(rows * top_k), NAN));
  backend.Route({.logits = in.view(), .top_k = top_k, .normalize = normalize, .scaling = scaling, .ids = ids.span(), .weights = weights.span()});
  return {ids.Read(), weights.Read()};
}

// Logits with ties: among the best, among the rest, and one row where all are equal.
std::vector<float> RouterLogits(int64_t rows, int64_t experts, uint64_t seed) {
  Random random(seed);
  std::vector<float> logits = random.Normals(rows * experts, 3);
  for (int64_t t = 0; t < rows; ++t) {
    float* row = logits.data() + t * experts;
    if (t % 3 == 1) {
      const float best = 12;
      for (int i = 0; i < 3; ++i) row[random.Below(experts)] = best;
    }
    if (t % 5 == 4) row[random.Below(experts)] = row[random.Below(experts)];
    if (t % 16 == 7)
      for (int64_t e = 0; e < experts; ++e) row[e] = 0.25f;
    if (t % 16 == 9) row[random.Below(experts)] = -200;  // a probability of zero in FP32
  }
  return logits;
}

}  // namespace

void CompareSmallOps(Backend& backend) {
  const int threads = platform::Threads();
  const auto oracle = kernels::CreateReferenceBackend({});
  for (int64_t rows : kRows)
    for (int64_t cols : kCols) {
      for (DType out : {DType::kF32, DType::kBF16}) {
        for (bool plus_one : {false, true}) CompareRowOp(backend, *oracle, Norm(rows, cols, out, plus_one), rows, cols);
        CompareRowOp(backend, *oracle, SiluMul(rows, cols, out), rows, cols);
      }
      for (bool gated : {false, true}) CompareRowOp(backend, *oracle, AddGated(rows, cols, gated), rows, cols);
    }
  platform::SetThreads(threads);
}

void CompareRoute(Backend& backend) {
  const auto oracle = kernels::CreateReferenceBackend({});
  uint64_t seed = 300;
  for (int64_t rows : kRows)
    for (int64_t experts : {1, 4, 6, 60, 128, 257})
      for (int64_t top_k : {1, 2, 3, 4, 6, 8}) {
        if (top_k > experts) continue;
        for (bool normalize : {false, true}) {
          SCOPED_TRACE(base::StrCat("rows ", rows, ", E ", experts, ", top ", top_k, ", normalize ", normalize));
          const float scaling = ++seed % 2 ? 1.0f : 2.5f;
          const std::vector<float> logits = RouterLogits(rows, experts, seed);
          const Routed got = RunRoute(backend, rows, experts, logits, top_k, normalize, scaling);
          const Routed want = RunRoute(*oracle, rows, experts, logits, top_k, normalize, scaling);
          EXPECT_EQ(got.ids, want.ids);
          std::vector<double> bound = Magnitudes(want.weights);
          for (double& b : bound) b *= (32 + std::sqrt(static_cast<double>(experts))) * kUnit;
          ExpectWithin(got.weights, want.weights, bound);
          for (int64_t t = 0; t < rows; t += 5) {
            const Routed alone = RunRoute(backend, 1, experts, Slice(logits, t, t + 1, experts), top_k, normalize, scaling);
            ExpectSameBits(alone.weights, Slice(got.weights, t, t + 1, top_k), base::StrCat("row ", t, " alone"));
          }
        }
      }
}

void CompareEmbedAndGather(Backend& backend) {
  constexpr int64_t kVocab = 37, kD = 48;
  for (DType dtype : {DType::kBF16, DType::kF32}) {
    SCOPED_TRACE(tensor::DTypeName(dtype));
    const WeightData table = RandomWeight(tensor::Format::Plain(dtype), kVocab, kD, 21);
    auto weight = backend.CreateEmbedding(dtype, kVocab, kD);
    ASSERT_TRUE(weight);
    for (auto [begin, end] : {std::pair<int64_t, int64_t>{20, kVocab}, {0, 20}})
      ASSERT_TRUE(backend.PackEmbedding(**weight, begin, tensor::Matrix(table.Rows(begin, end).elements, dtype, end - begin, kD)));
    const std::vector<int32_t> tokens = {5, 0, 36, 19, 20, 5, 5};
    DeviceArray<int32_t> ids(backend, tokens);
    DeviceMatrix out(backend, DType::kF32, 7, kD, 16);
    backend.Embed({.table = weight->get(), .tokens = ids.span(), .out = out.view()});
    std::vector<float> want;
    for (int32_t t : tokens)
      for (int64_t i = 0; i < kD; ++i) want.push_back(static_cast<float>(table.values[t * kD + i]));
    ExpectSameBits(out.Read(), want, "Embed");

    DeviceMatrix x(backend, dtype, 7, kD, want, 8), gathered(backend, dtype, 4, kD, 16);
    DeviceArray<int64_t> rows(backend, std::vector<int64_t>{6, 0, 3, 3});
    backend.GatherRows({.x = x.view(), .rows = rows.span(), .out = gathered.view()});
    std::vector<float> chosen;
    for (int64_t r : {6, 0, 3, 3}) chosen.insert(chosen.end(), want.begin() + r * kD, want.begin() + (r + 1) * kD);
    ExpectSameBits(gathered.Read(), chosen, "GatherRows");
  }
}

}  // namespace halfbyte::test
