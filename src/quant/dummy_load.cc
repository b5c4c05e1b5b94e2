#include "quant/dummy_load.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>

#include "numerics/bf16.h"
#include "platform/parallel.h"

namespace halfbyte::quant {
namespace {

using tensor::DType;
using tensor::Format;

// splitmix64: one multiply-xor chain a value, seeded by matrix and row so that the result does not depend on threads.
struct Random {
  uint64_t state;
  uint64_t Next() {
    uint64_t x = (state += 0x9E3779B97F4A7C15ull);
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
  }
};

// Bytes of one row of elements: BF16 with exponents around 2^-6, FP8 and 4-bit codes of any value but NaN.
void FillElements(const Format& f, int64_t n, Random& random, std::byte* out) {
  if (f.elem == DType::kBF16 || f.elem == DType::kF32) {
    for (int64_t i = 0; i < n; ++i) {
      const uint64_t r = random.Next();
      const float v = (static_cast<float>(r & 0xFFFF) + static_cast<float>((r >> 16) & 0xFFFF) - 65535.0f) * (0.05f / 65535.0f);
      if (f.elem == DType::kF32) reinterpret_cast<float*>(out)[i] = v;
      else reinterpret_cast<uint16_t*>(out)[i] = numerics::FloatToBf16(v);
    }
    return;
  }
  const int64_t bytes = n * tensor::DTypeBits(f.elem) / 8;
  for (int64_t i = 0; i < bytes; ++i) {
    uint8_t b = static_cast<uint8_t>(random.Next());
    if (f.elem != DType::kF4) b = static_cast<uint8_t>((b & 0x80) | (0x28 + (b & 0x0F)));  // E4M3 of 2^-2 .. 2^-1
    out[i] = static_cast<std::byte>(b);
  }
}

base::Status FillMatrix(const PlannedMatrix& m, uint64_t seed, WeightSink& sink) {
  constexpr int64_t kRows = 128;  // a multiple of every block height
  const Format& f = m.target;
  const int64_t cols = m.source.cols;
  const bool whole = checkpoint::IsExpertRole(m.source.id.role);
  const int64_t step = whole ? m.source.rows : kRows;
  std::vector<std::byte> elements(static_cast<size_t>(step * cols * tensor::DTypeBits(f.elem) / 8));
  const int64_t scale_cols = f.block_scale ? (cols + f.block_cols - 1) / f.block_cols : 0, scale_rows = f.block_scale ? (step + f.block_rows - 1) / f.block_rows : 0;
  std::vector<uint8_t> block_bytes(f.is_nvfp4() ? static_cast<size_t>(scale_rows * scale_cols) : 0, 0x70);  // 2^7
  std::vector<float> block_floats(f.is_fp8() ? static_cast<size_t>(scale_rows * scale_cols) : 0, 0.06f), outer(static_cast<size_t>(step), f.is_nvfp4() ? 0.05f / (6 * 128) : 0.06f);
  for (int64_t begin = 0; begin < m.source.rows; begin += step) {
    const int64_t rows = std::min(step, m.source.rows - begin);
    Random random{seed + static_cast<uint64_t>(begin) * 0x9E37ull};
    FillElements(f, rows * cols, random, elements.data());
    const void* scales = f.is_nvfp4() ? static_cast<const void*>(block_bytes.data()) : f.block_scale ? block_floats.data() : nullptr;
    HB_RETURN_IF_ERROR(sink.PutMatrix(m.source.id, begin, {f, rows, cols, elements.data(), scales, f.outer == tensor::Outer::kNone ? nullptr : outer.data()}));
  }
  return {};
}

}  // namespace

SourceMap DummySources(const std::vector<ExpectedTensor>& expected, bool tied) {
  SourceMap map;
  map.tied = tied;
  for (const ExpectedTensor& e : expected) {
    if (e.cols == 0) { map.vectors.push_back({e.id, e.part, e.rows, nullptr}); continue; }
    SourceMatrix m;
    m.id = e.id;
    m.rows = e.rows;
    m.cols = e.cols;
    m.format = Format::Bf16();
    map.matrices.push_back(std::move(m));
  }
  return map;
}

base::Status RunDummyLoad(const QuantPlan& plan, WeightSink& sink, uint64_t seed) {
  std::mutex mutex;
  base::Status result;
  std::atomic<bool> failed{false};
  platform::ParallelFor(static_cast<int64_t>(plan.matrices.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && !failed; ++i) {
      base::Status status = FillMatrix(plan.matrices[static_cast<size_t>(i)], seed + static_cast<uint64_t>(i) * 0xD1B54A32D192ED03ull, sink);
      if (status) continue;
      std::lock_guard lock(mutex);
      failed = true;
      result = std::move(status);
    }
  });
  if (!result) return result;
  for (const SourceVector& v : plan.vectors) {
    const bool norm = v.part == TensorPart::kWeight;
    std::vector<float> values(static_cast<size_t>(v.size), norm ? 1.0f : 0.0f);
    HB_RETURN_IF_ERROR(sink.PutVector(v.id, v.part, values));
  }
  return {};
}

}  // namespace halfbyte::quant
