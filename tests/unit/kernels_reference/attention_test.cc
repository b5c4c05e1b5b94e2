// Norms, RoPE, the cache and attention against formulas written out here: one sequence, one row after the other, no cache.
#include <cmath>
#include <gtest/gtest.h>

#include "kernels/reference/reference_backend.h"
#include "support/compare_rows.h"
#include "support/device_data.h"
#include "support/random_data.h"
#include "support/weight_data.h"

namespace halfbyte::test {
namespace {

using kernels::QkNorm;
using tensor::DType;

constexpr int64_t kT = 37, kHeads = 4, kKvHeads = 2, kHd = 32, kDims = 24;  // RoPE leaves the last 8 of a head alone
constexpr float kEps = 1e-5f, kScale = 0.2f, kRopeScale = 1.25f;
constexpr float kKScale = 0.02f, kVScale = 0.03f;

struct Setting {
  QkNorm norm = QkNorm::kNone;
  int64_t window = 0;
  bool sinks = false, plus_one = false;
  float clip = 0;
  DType out = DType::kF32, kv = DType::kF32;
};

struct Data {
  std::vector<float> q = Random(1).Normals(kT * kHeads * kHd, 2), k = Random(2).Normals(kT * kKvHeads * kHd, 2), v = Random(3).Normals(kT * kKvHeads * kHd, 2);
  std::vector<float> q_norm = Random(4).Normals(kHeads * kHd), k_norm = Random(5).Normals(kKvHeads * kHd), sinks = Random(6).Normals(kHeads), inv_freq;
  Data() {
    for (int i = 0; i < kDims / 2; ++i) inv_freq.push_back(static_cast<float>(std::pow(500.0, -i / 12.0)));
  }
};

struct Results {
  std::vector<float> q, out;
};

Results RunBackend(const Data& d, const Setting& s) {
  const auto backend = kernels::CreateReferenceBackend({});
  kernels::KvLayer kv{.spec = {.kv_heads = kKvHeads, .head_dim = kHd, .block_tokens = 16, .dtype = s.kv}, .blocks = 5, .k_scale = kKScale, .v_scale = kVScale};
  tensor::Buffer pool = std::move(*backend->Allocate(static_cast<size_t>(kv.blocks * kernels::KvBlockBytes(kv.spec))));
  kv.data = pool.as<std::byte>();
  const int32_t blocks[] = {3, 0, 4};
  const kernels::SequenceRows rows{.rows = kT, .blocks = blocks};
  const kernels::Batch batch{.rows = kT, .prompt_rows = kT, .sequences = {&rows, 1}};
  DeviceMatrix q(*backend, DType::kF32, kT, kHeads * kHd, d.q), k(*backend, DType::kF32, kT, kKvHeads * kHd, d.k), v(*backend, DType::kF32, kT, kKvHeads * kHd, d.v);
  DeviceMatrix q_out(*backend, s.out, kT, kHeads * kHd), out(*backend, s.out, kT, kHeads * kHd);
  backend->Qkv({.batch = batch, .heads = kHeads, .kv_heads = kKvHeads, .head_dim = kHd, .q = q.view(), .k = k.view(), .v = v.view(), .clip = s.clip, .norm = s.norm,
                .q_norm = d.q_norm.data(), .k_norm = d.k_norm.data(), .eps = kEps, .plus_one = s.plus_one,
                .rope = {.dims = kDims, .inv_freq = d.inv_freq.data(), .scale = kRopeScale}, .q_out = q_out.view(), .kv = kv});
  backend->Attention({.batch = batch, .heads = kHeads, .kv_heads = kKvHeads, .head_dim = kHd, .scale = kScale, .window = s.window,
                      .sinks = s.sinks ? d.sinks.data() : nullptr, .q = q_out.view(), .kv = kv, .out = out.view(), .exact = s.out == DType::kF32});
  return {q_out.Read(), out.Read()};
}

float To(DType dtype, double v) { return dtype == DType::kBF16 ? RoundBf16(static_cast<float>(v)) : static_cast<float>(v); }

// The E4M3 value next to v, by trying all of them (ties to the even code), saturating at 448.
double NearestE4m3(double v) {
  int best = 0;
  for (int code = 0; code < 0x7F; ++code) {
    const double a = std::abs(E4m3Value(static_cast<uint8_t>(code)) - std::abs(v)), b = std::abs(E4m3Value(static_cast<uint8_t>(best)) - std::abs(v));
    if (a < b || (a == b && code % 2 == 0)) best = code;
  }
  return std::copysign(E4m3Value(static_cast<uint8_t>(best)), v);
}

float Stored(const Setting& s, double v, float scale) {
  if (s.kv == DType::kF8E4M3) return static_cast<float>(NearestE4m3(static_cast<float>(v) / scale)) * scale;
  return To(s.kv, v);
}

// x [cols] of position p through norm, clip and RoPE.
std::vector<double> Prepare(const Data& d, const Setting& s, std::vector<double> x, const std::vector<float>& weight, int64_t p) {
  const auto cols = static_cast<int64_t>(x.size()), unit = s.norm == QkNorm::kFlat ? cols : kHd;
  if (s.norm != QkNorm::kNone)
    for (int64_t begin = 0; begin < cols; begin += unit) {
      double squares = 0;
      for (int64_t i = 0; i < unit; ++i) squares += x[begin + i] * x[begin + i];
      for (int64_t i = 0; i < unit; ++i) x[begin + i] *= (weight[i] + (s.plus_one ? 1.0 : 0.0)) / std::sqrt(squares / static_cast<double>(unit) + kEps);
    }
  for (double& v : x) {
    if (s.clip > 0) v = std::min<double>(std::max<double>(v, -s.clip), s.clip);
    if (s.norm != QkNorm::kNone) v = To(s.out, v);
  }
  std::vector<double> y = x;
  for (int64_t i = 0; i < cols; ++i) {
    const int64_t j = i % kHd, half = kDims / 2;
    if (j >= kDims) continue;
    const float angle = static_cast<float>(p) * d.inv_freq[j % half];
    const double c = std::cos(static_cast<double>(angle)) * kRopeScale, sn = std::sin(static_cast<double>(angle)) * kRopeScale;
    y[i] = j < half ? x[i] * c - x[i + half] * sn : x[i] * c + x[i - half] * sn;
  }
  for (double& v : y) v = To(s.out, v);
  return y;
}

std::vector<double> Row(const std::vector<float>& m, int64_t r, int64_t cols) { return {m.begin() + r * cols, m.begin() + (r + 1) * cols}; }

Results Formula(const Data& d, const Setting& s) {
  Results result;
  std::vector<std::vector<double>> keys, values;
  for (int64_t p = 0; p < kT; ++p) {
    const std::vector<double> q = Prepare(d, s, Row(d.q, p, kHeads * kHd), d.q_norm, p);
    keys.push_back(Prepare(d, s, Row(d.k, p, kKvHeads * kHd), d.k_norm, p));
    values.push_back(Row(d.v, p, kKvHeads * kHd));
    for (double& v : keys.back()) v = Stored(s, v, kKScale);
    for (double& v : values.back()) v = Stored(s, To(s.out, s.clip > 0 ? std::clamp<double>(v, -s.clip, s.clip) : v), kVScale);
    for (double v : q) result.q.push_back(static_cast<float>(v));
    for (int64_t h = 0; h < kHeads; ++h) {
      const int64_t kv = h / (kHeads / kKvHeads) * kHd;
      double denominator = s.sinks ? std::exp(static_cast<double>(d.sinks[h])) : 0;
      std::vector<double> sum(kHd);
      for (int64_t j = 0; j <= p; ++j) {
        if (s.window > 0 && j <= p - s.window) continue;
        double logit = 0;
        for (int64_t i = 0; i < kHd; ++i) logit += q[h * kHd + i] * keys[j][kv + i];
        const double weight = std::exp(logit * kScale);
        denominator += weight;
        for (int64_t i = 0; i < kHd; ++i) sum[i] += weight * values[j][kv + i];
      }
      for (double v : sum) result.out.push_back(To(s.out, v / denominator));
    }
  }
  return result;
}

void Check(const Setting& s) {
  const Data d;
  const Results got = RunBackend(d, s), want = Formula(d, s);
  // The kernel's cos and sin are FP32 numbers, the formula's are not: a rounding to BF16 or E4M3 may go the other way now and then.
  const bool stepped = s.out != DType::kF32 || s.kv != DType::kF32;
  ExpectRowsClose(got.q, want.q, kT, stepped ? RowBound{1e-6, 4e-3, 0.4} : RowBound{1e-6, 1e-6, 0});
  ExpectRowsClose(got.out, want.out, kT, stepped ? RowBound{2e-6, s.kv == DType::kF8E4M3 ? 3e-2 : 4e-3, 0.5} : RowBound{2e-6, 2e-6, 0});
}

TEST(ReferenceAttention, Plain) { Check({}); }
TEST(ReferenceAttention, NormPerHead) { Check({.norm = QkNorm::kPerHead}); }
TEST(ReferenceAttention, NormFlatAndClip) { Check({.norm = QkNorm::kFlat, .clip = 0.7f}); }
TEST(ReferenceAttention, NormOfOnePlusWeight) { Check({.norm = QkNorm::kPerHead, .plus_one = true}); }
TEST(ReferenceAttention, Window) {
  Check({.window = 1});
  Check({.window = 5});
  Check({.window = 100});
}
TEST(ReferenceAttention, Sinks) { Check({.window = 7, .sinks = true}); }
TEST(ReferenceAttention, RoundedForm) {
  Check({.norm = QkNorm::kPerHead, .out = DType::kBF16, .kv = DType::kBF16});
  Check({.clip = 1.5f, .out = DType::kBF16, .kv = DType::kBF16});
}
TEST(ReferenceAttention, CacheTypes) {
  Check({.kv = DType::kBF16});
  Check({.kv = DType::kF8E4M3});
  Check({.out = DType::kBF16, .kv = DType::kF8E4M3});
}

// A window of 1 sees nothing but itself: the result is v.
TEST(ReferenceAttention, WindowOfOneIsV) {
  const Data d;
  const Results got = RunBackend(d, {.window = 1});
  for (int64_t t = 0; t < kT; ++t)
    for (int64_t h = 0; h < kHeads; ++h)
      for (int64_t i = 0; i < kHd; ++i) EXPECT_EQ(got.out[(t * kHeads + h) * kHd + i], d.v[(t * kKvHeads + h / 2) * kHd + i]);
}

TEST(ReferenceNorm, IsTheFormula) {
  const auto backend = kernels::CreateReferenceBackend({});
  const std::vector<float> x = AwkwardRows(20, 48, 8), w = Random(9).Normals(48);
  for (bool plus_one : {false, true}) {
    DeviceMatrix in(*backend, DType::kF32, 20, 48, x), out(*backend, DType::kF32, 20, 48), rounded(*backend, DType::kBF16, 20, 48);
    backend->RmsNorm({.x = in.view(), .weight = w.data(), .eps = kEps, .plus_one = plus_one, .out = out.view()});
    backend->RmsNorm({.x = in.view(), .weight = w.data(), .eps = kEps, .plus_one = plus_one, .out = rounded.view()});
    std::vector<float> want;
    for (int t = 0; t < 20; ++t) {
      long double squares = 0;
      for (int i = 0; i < 48; ++i) squares += static_cast<long double>(x[t * 48 + i]) * x[t * 48 + i];
      for (int i = 0; i < 48; ++i)
        want.push_back(static_cast<float>((plus_one ? 1.0L + w[i] : w[i]) * x[t * 48 + i] / std::sqrt(squares / 48 + static_cast<long double>(kEps))));
    }
    ExpectRowsClose(out.Read(), want, 20, {1e-7, 1e-7, 0});
    std::vector<float> want_rounded;
    for (float v : out.Read()) want_rounded.push_back(RoundBf16(v));
    EXPECT_EQ(rounded.Read(), want_rounded);
  }
}

TEST(ReferenceRoute, BestFirstTiesToTheLowestId) {
  const auto backend = kernels::CreateReferenceBackend({});
  // Row 0: a tie for the best and one for the last place; row 1: all equal; row 2: two logits that one FP32 softmax cannot tell apart.
  const std::vector<float> logits = {1, 3, 0, 3, 1, -2, 2, 2, 2, 2, 2, 2, -90, -90.00001f, 20, -89.99999f, -95, -96};
  DeviceMatrix in(*backend, DType::kF32, 3, 6, logits);
  std::vector<int32_t> ids(9);
  std::vector<float> weights(9);
  backend->Route({.logits = in.view(), .top_k = 3, .normalize = true, .scaling = 2, .ids = ids, .weights = weights});
  EXPECT_EQ(ids, (std::vector<int32_t>{1, 3, 0, 0, 1, 2, 2, 3, 0}));
  const double e = std::exp(-2.0);
  EXPECT_FLOAT_EQ(weights[0], static_cast<float>(2 / (2 + e)));
  EXPECT_FLOAT_EQ(weights[1], static_cast<float>(2 / (2 + e)));
  EXPECT_FLOAT_EQ(weights[2], static_cast<float>(2 * e / (2 + e)));
  EXPECT_FLOAT_EQ(weights[3], 2.0f / 3);
  backend->Route({.logits = in.view(), .top_k = 1, .normalize = false, .scaling = 1, .ids = ids, .weights = weights});
  EXPECT_FLOAT_EQ(weights[0], static_cast<float>(1 / (2 + 2 * e + std::exp(-3.0) + std::exp(-5.0))));
}

}  // namespace
}  // namespace halfbyte::test
