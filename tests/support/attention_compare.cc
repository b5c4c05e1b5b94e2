// The differential kit for Qkv and Attention.
#include <cmath>
#include <gtest/gtest.h>

#include "kernels/reference/reference_backend.h"
#include "platform/parallel.h"
#include "support/attention_world.h"
#include "support/backend_compare.h"
#include "support/compare_rows.h"

namespace halfbyte::test {
namespace {

using kernels::Backend;
using kernels::QkNorm;
using tensor::DType;

// The three arithmetic settings that models run in, and a cache of 8 bits in each.
std::vector<AttentionShape> Settings(AttentionShape s) {
  std::vector<AttentionShape> out;
  for (auto [kv, q, exact] : {std::tuple{DType::kF32, DType::kF32, true}, {DType::kBF16, DType::kF32, true}, {DType::kBF16, DType::kBF16, false},
                              {DType::kF8E4M3, DType::kBF16, false}, {DType::kF8E4M3, DType::kF32, true}}) {
    s.kv = kv;
    s.out = q;
    s.exact = exact;
    out.push_back(s);
  }
  return out;
}

std::vector<AttentionShape> Shapes() {
  const std::vector<AttentionShape> shapes = {
      {},
      {.heads = 4, .kv_heads = 4, .head_dim = 16, .rope_dims = 0},
      {.heads = 8, .kv_heads = 1, .head_dim = 64, .rope_dims = 64, .norm = QkNorm::kPerHead},
      {.heads = 3, .kv_heads = 1, .head_dim = 48, .rope_dims = 16, .norm = QkNorm::kFlat, .clip = 0.8f},
      {.heads = 2, .kv_heads = 2, .head_dim = 128, .block_tokens = 32, .rope_dims = 128, .clip = 1.2f},
      {.heads = 4, .kv_heads = 2, .head_dim = 32, .window = 1, .sinks = true},
      {.heads = 100, .kv_heads = 1, .head_dim = 16, .rope_dims = 16, .sinks = true},  // more query heads of one KV head than the CPU takes at once
      {.heads = 4, .kv_heads = 2, .head_dim = 32, .window = 17, .norm = QkNorm::kPerHead, .plus_one = true},
      {.heads = 6, .kv_heads = 2, .head_dim = 80, .block_tokens = 64, .window = 40, .rope_dims = 40, .sinks = true},
  };
  std::vector<AttentionShape> out;
  for (const AttentionShape& s : shapes)
    for (const AttentionShape& setting : Settings(s)) out.push_back(setting);
  return out;
}

// Four sequences: prompts of 1, 33 and 70 rows, the last in two chunks, beside rows of a fourth that generates; then all four generate, one of
// them three rows at once (draft tokens under verification).
AttentionResult Play(Backend& backend, const AttentionShape& shape, bool scattered) {
  AttentionWorld world(backend, shape, 4, 140, scattered);
  world.Prefill(3, {130});
  world.Step({{0, 0, 1}, {1, 0, 33}, {2, 0, 50}, {3, 130, 1}}, 3);
  world.Step({{2, 50, 20}, {0, 1, 1}, {1, 33, 3}, {3, 131, 1}}, 1);
  world.Step({{0, 2, 1}, {1, 36, 1}, {2, 70, 1}, {3, 132, 2}}, 0);
  return world.result();
}

std::vector<float> Flatten(const std::map<std::pair<int, int64_t>, std::vector<float>>& rows) {
  std::vector<float> out;
  for (const auto& [key, row] : rows) out.insert(out.end(), row.begin(), row.end());
  return out;
}

// Codes of K and V (BF16 or E4M3) that lie at a rounding boundary may differ; see backend_compare.h.
RowBound BoundFor(const AttentionShape& s) {
  if (s.kv == DType::kF8E4M3) return {s.exact ? 1e-5 : 1.5e-2, 5e-2, 0.3};
  if (!s.exact) return {1.5e-2, 1.5e-2, 0};
  if (s.kv == DType::kBF16) return {1e-5, 5e-3, 0.3};
  return {1e-5, 1e-5, 0};
}

void CompareOne(const AttentionShape& s, const AttentionResult& got, const AttentionResult& want) {
  ASSERT_EQ(got.out.size(), want.out.size());
  const std::vector<float> q = Flatten(got.q), wanted_q = Flatten(want.q);
  std::vector<double> bound;
  for (size_t h = 0; h < wanted_q.size(); h += static_cast<size_t>(s.head_dim)) {
    double largest = 0;
    for (size_t i = h; i < h + static_cast<size_t>(s.head_dim); ++i) largest = std::max(largest, std::abs(static_cast<double>(wanted_q[i])));
    bound.insert(bound.end(), static_cast<size_t>(s.head_dim), largest * (s.out == DType::kBF16 ? 1.0 / 128 : 32 * kUnit));
  }
  ExpectWithin(q, wanted_q, bound);
  const auto heads = static_cast<int64_t>(want.out.size()) * s.heads;
  ExpectRowsClose(Flatten(got.out), Flatten(want.out), heads, BoundFor(s));
}

// Everything in `got` equals what `want` has at the same place.
void ExpectSame(const AttentionResult& got, const AttentionResult& want, const std::string& what) {
  for (const auto& [key, row] : got.out) {
    const std::string where = base::StrCat(what, ", sequence ", key.first, " position ", key.second);
    ExpectSameBits(got.q.at(key), want.q.at(key), where + ", q");
    ExpectSameBits(row, want.out.at(key), where);
    if (testing::Test::HasNonfatalFailure()) return;
  }
}

void CheckInvariance(Backend& backend, const AttentionShape& s) {
  platform::SetThreads(1);
  const AttentionResult want = Play(backend, s, false);
  for (int threads : {1, 2, 5}) {
    platform::SetThreads(threads);
    ExpectSame(Play(backend, s, true), want, base::StrCat("scattered blocks, ", threads, " threads"));
  }
  // Any chunking of a prompt, and alone instead of beside others.
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{70}, {1, 69}, {16, 16, 16, 16, 6}, {33, 1, 1, 35}, {64, 6}, {7, 40, 23}}) {
    AttentionWorld world(backend, s, 4, 140, true);
    world.Prefill(2, sizes);
    ExpectSame(world.result(), want, base::StrCat(sizes.size(), " chunks, the first of ", sizes[0]));
  }
  // Generated rows alone, and one at a time instead of several.
  AttentionWorld world(backend, s, 4, 140, false);
  world.Prefill(1, {33});
  for (int64_t p = 33; p < 37; ++p) world.Step({{1, p, 1}}, 0);
  ExpectSame(world.result(), want, "generated rows one at a time");
}

}  // namespace

void CompareAttention(Backend& backend) {
  const auto oracle = kernels::CreateReferenceBackend({});
  for (const AttentionShape& s : Shapes()) {
    SCOPED_TRACE(s.ToString());
    CompareOne(s, Play(backend, s, true), Play(*oracle, s, false));
  }
}

void CheckAttentionInvariance(Backend& backend) {
  const int threads = platform::Threads();
  for (const AttentionShape& s : Shapes()) {
    SCOPED_TRACE(s.ToString());
    CheckInvariance(backend, s);
  }
  platform::SetThreads(threads);
}

}  // namespace halfbyte::test
