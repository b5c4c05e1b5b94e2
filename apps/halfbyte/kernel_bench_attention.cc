// Attention by each kernel: 32 query and 4 KV heads of 128, decode at three lengths and prefill.
#include "base/check.h"
#include "kernel_bench.h"
#include "kernel_bench_data.h"
#include "numerics/bf16.h"

namespace halfbyte::app {
namespace {

using kernels::DType;

constexpr int64_t kHeads = 32, kKvHeads = 4, kHeadDim = 128, kBlock = 64;

// A layer's cache filled by the backend itself (its layout is its own), and the sequences in it.
struct Cache {
  kernels::KvLayer kv;
  tensor::Buffer memory;
  std::vector<int32_t> blocks;
};

Cache MakeCache(kernels::Backend& backend, DType dtype, int64_t tokens) {
  Cache c;
  c.kv.spec = {kKvHeads, kHeadDim, kBlock, dtype};
  c.kv.blocks = (tokens + kBlock - 1) / kBlock;
  auto memory = backend.Allocate(static_cast<size_t>(c.kv.blocks * kernels::KvBlockBytes(c.kv.spec)));
  HB_CHECK(memory.has_value());
  c.memory = std::move(*memory);
  c.kv.data = c.memory.as<std::byte>();
  for (int64_t b = 0; b < c.kv.blocks; ++b) c.blocks.push_back(static_cast<int32_t>(b));
  constexpr int64_t kRows = 512;
  std::vector<float> q(static_cast<size_t>(kRows * kHeads * kHeadDim));
  for (int64_t first = 0; first < tokens; first += kRows) {
    const int64_t rows = std::min(kRows, tokens - first);
    const RandomRows kv(rows, kKvHeads * kHeadDim, DType::kF32, static_cast<uint32_t>(first / kRows % 8 + 1));
    const kernels::SequenceRows s{0, rows, first, c.blocks.data()};
    kernels::QkvOp op;
    op.batch = {rows, rows, {&s, 1}};
    op.heads = kHeads;
    op.kv_heads = kKvHeads;
    op.head_dim = kHeadDim;
    op.q = kernels::Matrix(q.data(), DType::kF32, rows, kHeads * kHeadDim);
    op.k = op.v = kv.Matrix(rows);
    op.q_out = kernels::MutableMatrix(q.data(), DType::kF32, rows, kHeads * kHeadDim);
    op.kv = c.kv;
    backend.Qkv(op);
  }
  return c;
}

std::vector<float> Run(kernels::Backend& backend, const Cache& c, const RandomRows& q, int64_t rows, int64_t prompt_rows, const std::vector<kernels::SequenceRows>& sequences) {
  std::vector<float> out(static_cast<size_t>(rows * kHeads * kHeadDim));
  kernels::AttentionOp op;
  op.batch = {rows, prompt_rows, sequences};
  op.heads = kHeads;
  op.kv_heads = kKvHeads;
  op.head_dim = kHeadDim;
  op.scale = 0.088f;
  op.q = q.Matrix(rows);
  op.kv = c.kv;
  op.out = kernels::MutableMatrix(out.data(), DType::kF32, rows, kHeads * kHeadDim);
  backend.Attention(op);
  return out;
}

}  // namespace

void BenchAttentionKernel(KernelBench& bench, const kernels::CpuKernel& k) {
  const std::unique_ptr<kernels::Backend> backend = bench.BackendWith(k);
  const RandomRows q(512, kHeads * kHeadDim, DType::kBF16, 2);
  {
    constexpr int64_t kTokens = 300;
    const Cache mine = MakeCache(*backend, DType::kBF16, kTokens), theirs = MakeCache(bench.reference(), DType::kBF16, kTokens);
    const std::vector<kernels::SequenceRows> last{{0, 1, kTokens - 1, mine.blocks.data()}}, chunk{{0, 40, kTokens - 40, mine.blocks.data()}};
    // Kernels with BF16 dot products round the softmax weights (2^-9 each: 1e-3 was measured), the others nothing.
    const double bound = k.rounds ? 5e-3 : 1e-5;
    bench.Check("decode at 300", Run(*backend, mine, q, 1, 0, last), Run(bench.reference(), theirs, q, 1, 0, last), bound);
    bench.Check("prefill of 40 after 260", Run(*backend, mine, q, 40, 40, chunk), Run(bench.reference(), theirs, q, 40, 40, chunk), bound);
  }
  if (bench.options().check_only) return;
  for (const int64_t context : {512, 4096, 16384}) {
    const int64_t bytes = 2 * context * kKvHeads * kHeadDim * 2;
    std::vector<Cache> caches;
    for (int64_t i = 0; i < kColdBytes / 2 / bytes; ++i) caches.push_back(MakeCache(*backend, DType::kBF16, context));
    KernelCase c;
    c.what = base::StrCat("decode at ", context);
    c.bytes = static_cast<double>(bytes);
    c.flop = 4.0 * static_cast<double>(context * kHeads * kHeadDim);
    c.run = [&](int64_t i) {
      const Cache& cache = caches[static_cast<size_t>(i) % caches.size()];
      Run(*backend, cache, q, 1, 0, {{0, 1, context - 1, cache.blocks.data()}});
    };
    bench.Measure(c);
  }
  const Cache cache = MakeCache(*backend, DType::kBF16, 4096);
  for (const int64_t before : {0, 3584}) {
    constexpr int64_t kRows = 512;
    KernelCase c;
    c.what = base::StrCat("prefill of 512 after ", before);
    c.flop = 4.0 * static_cast<double>(kRows * before + kRows * (kRows + 1) / 2) * kHeads * kHeadDim;
    c.run = [&](int64_t) { Run(*backend, cache, q, kRows, kRows, {{0, kRows, before, cache.blocks.data()}}); };
    bench.Measure(c);
  }
}

}  // namespace halfbyte::app
