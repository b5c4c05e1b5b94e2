#include "support/attention_world.h"

#include <cmath>

#include "support/random_data.h"

namespace halfbyte::test {

using tensor::DType;

std::string AttentionShape::ToString() const {
  return base::StrCat("H ", heads, ", KVH ", kv_heads, ", HD ", head_dim, ", blocks of ", block_tokens, ", window ", window, ", RoPE ", rope_dims,
                      ", norm ", static_cast<int>(norm), ", clip ", clip, sinks ? ", sinks" : "", plus_one ? ", 1 + w" : "", ", cache ",
                      tensor::DTypeName(kv), ", out ", tensor::DTypeName(out), exact ? ", exact" : "");
}

namespace {

std::vector<float> InverseFrequencies(int64_t dims) {
  std::vector<float> out;
  for (int64_t i = 0; i < dims / 2; ++i) out.push_back(static_cast<float>(std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(dims))));
  return out;
}

// Weights around 1 (around 0 for the 1 + w form).
std::vector<float> NormWeights(const AttentionShape& s, int64_t heads, uint64_t seed) {
  std::vector<float> w = Random(seed).Normals(s.norm == kernels::QkNorm::kFlat ? heads * s.head_dim : s.head_dim, 0.3);
  for (float& v : w) v += s.plus_one ? 0.0f : 1.0f;
  return w;
}

}  // namespace

AttentionWorld::AttentionWorld(kernels::Backend& backend, const AttentionShape& s, int sequences, int64_t length, bool scattered)
    : backend_(backend), shape_(s), blocks_(static_cast<size_t>(sequences)), inv_freq_(backend, InverseFrequencies(s.rope_dims)),
      q_norm_(backend, NormWeights(s, s.heads, 31)), k_norm_(backend, NormWeights(s, s.kv_heads, 32)), sinks_(backend, Random(33).Normals(s.heads)) {
  const int64_t each = (length + s.block_tokens - 1) / s.block_tokens;
  kv_ = {.spec = {.kv_heads = s.kv_heads, .head_dim = s.head_dim, .block_tokens = s.block_tokens, .dtype = s.kv}};
  kv_.blocks = scattered ? 3 * sequences * each + 2 : sequences * each;
  kv_.k_scale = 0.03f, kv_.v_scale = 0.02f;  // a file that has them has them whatever the cache holds: only E4M3 may look at them
  const auto bytes = static_cast<size_t>(kv_.blocks * kernels::KvBlockBytes(kv_.spec));
  pool_ = std::move(*backend.Allocate(bytes));
  // Every byte 0xFF is a NaN in F32, BF16 and E4M3: what lies behind a sequence's end or in foreign blocks must not be used.
  const std::vector<uint8_t> nans(bytes, 0xFF);
  HB_CHECK(backend.Upload(pool_.data(), nans.data(), bytes).has_value());
  kv_.data = pool_.as<std::byte>();
  std::vector<int32_t> order;
  for (int32_t b = 0; b < kv_.blocks; ++b) order.push_back(b);
  Random random(34);
  if (scattered)
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[static_cast<size_t>(random.Below(static_cast<int64_t>(i)))]);
  for (int64_t b = 0; b < sequences * each; ++b) blocks_[static_cast<size_t>(b / each)].push_back(order[static_cast<size_t>(b)]);
}

std::vector<float> AttentionWorld::Input(char which, int sequence, int64_t position, int64_t cols) const {
  return Random(static_cast<uint64_t>(which) * 1000003 + static_cast<uint64_t>(sequence) * 100019 + static_cast<uint64_t>(position)).Normals(cols, 1.5);
}

void AttentionWorld::Step(const std::vector<Chunk>& chunks, size_t prompt_chunks) {
  const int64_t q_cols = shape_.heads * shape_.head_dim, kv_cols = shape_.kv_heads * shape_.head_dim;
  kernels::Batch batch;
  std::vector<kernels::SequenceRows> rows;
  std::vector<float> q, k, v;
  std::vector<DeviceArray<int32_t>> tables;
  for (size_t i = 0; i < chunks.size(); ++i) {
    const Chunk& c = chunks[i];
    tables.emplace_back(backend_, blocks_[static_cast<size_t>(c.sequence)]);
    rows.push_back({.first_row = batch.rows, .rows = c.rows, .first_position = c.first, .blocks = tables.back().data()});
    batch.rows += c.rows;
    if (i < prompt_chunks) batch.prompt_rows += c.rows;
    for (int64_t p = c.first; p < c.first + c.rows; ++p)
      for (auto [to, which, cols] : {std::tuple{&q, 'q', q_cols}, {&k, 'k', kv_cols}, {&v, 'v', kv_cols}}) {
        const std::vector<float> row = Input(which, c.sequence, p, cols);
        to->insert(to->end(), row.begin(), row.end());
      }
  }
  batch.sequences = rows;
  const int64_t t = batch.rows;
  DeviceMatrix dq(backend_, DType::kF32, t, q_cols, q, 8), dk(backend_, DType::kF32, t, kv_cols, k, 8), dv(backend_, DType::kF32, t, kv_cols, v, 8);
  DeviceMatrix q_out(backend_, shape_.out, t, q_cols, 16), out(backend_, shape_.out, t, q_cols, 32);
  const bool normed = shape_.norm != kernels::QkNorm::kNone;
  backend_.Qkv({.batch = batch, .heads = shape_.heads, .kv_heads = shape_.kv_heads, .head_dim = shape_.head_dim, .q = dq.view(), .k = dk.view(), .v = dv.view(),
                .clip = shape_.clip, .norm = shape_.norm, .q_norm = normed ? q_norm_.data() : nullptr, .k_norm = normed ? k_norm_.data() : nullptr,
                .eps = 1e-6f, .plus_one = shape_.plus_one, .rope = {.dims = shape_.rope_dims, .inv_freq = inv_freq_.data(), .scale = 1.1f},
                .q_out = q_out.view(), .kv = kv_});
  backend_.Attention({.batch = batch, .heads = shape_.heads, .kv_heads = shape_.kv_heads, .head_dim = shape_.head_dim,
                      .scale = 1.0f / std::sqrt(static_cast<float>(shape_.head_dim)), .window = shape_.window, .sinks = shape_.sinks ? sinks_.data() : nullptr,
                      .q = q_out.view(), .kv = kv_, .out = out.view(), .exact = shape_.exact});
  const std::vector<float> all_q = q_out.Read(), all_out = out.Read();
  for (size_t i = 0; i < chunks.size(); ++i)
    for (int64_t r = 0; r < chunks[i].rows; ++r) {
      const int64_t at = (rows[i].first_row + r) * q_cols;
      const std::pair<int, int64_t> key{chunks[i].sequence, chunks[i].first + r};
      result_.q[key] = {all_q.begin() + at, all_q.begin() + at + q_cols};
      result_.out[key] = {all_out.begin() + at, all_out.begin() + at + q_cols};
    }
}

void AttentionWorld::Prefill(int sequence, const std::vector<int64_t>& sizes) {
  int64_t first = 0;
  for (int64_t rows : sizes) {
    Step({{sequence, first, rows}}, 1);
    first += rows;
  }
}

}  // namespace halfbyte::test
