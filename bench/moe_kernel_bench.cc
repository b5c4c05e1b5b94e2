// Each expert kernel of the table alone, one thread, weights in cache: what the instructions can do. The best of many short runs counts, so that the
// figures hold on a machine that is shared.
//
//   moe_kernel_bench [name part]
//
// For M rows of K = 2048 by one pair of tiles (32 columns): time, GB/s of packed weights, Gop/s (2 * 32 * K * M) with decoding, and the share of one
// core's peak: FP32 FMA, vdpbf16ps, AMX or vpdpbusd, whichever the kernel is made of.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/limits/limits.h"
#include "kernels/cpu/moe/kernels.h"
#include "platform/parallel.h"
#include "tensor/buffer.h"

namespace halfbyte {
namespace {

using namespace kernels::cpu::moe;  // NOLINT: the names of kernel.h

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

constexpr int64_t kK = 2048;

int64_t TileBytes(WeightKind kind) {
  switch (kind) {
    case WeightKind::kNvfp4: return Nvfp4TileBytes(kK);
    case WeightKind::kFp8: return kK / 128 * 64 + kK * kTile;
    case WeightKind::kBf16: return kK * kTile * 2;
    case WeightKind::kF32: return kK * kTile * 4;
  }
  return 0;
}

// Bits that are sane numbers in every format: 0x3C3C... is 1.0 to 2.0 in FP8, 0.0115 in BF16 and FP32, and mixed codes in NVFP4.
void Fill(std::byte* data, int64_t bytes) { std::memset(data, 0x3C, static_cast<size_t>(bytes)); }

template <typename Body>
double Best(const Body& body) {
  double best = 1e9;
  for (int i = 0; i < 400; ++i) {
    const double begin = Now();
    body();
    best = std::min(best, Now() - begin);
  }
  return best;
}

void Measure(const MoeKernel& k, const kernels::cpu::MachineLimits& limits) {
  static tensor::Buffer memory = std::move(*tensor::Buffer::Host(16 << 20));
  auto* base = memory.as<std::byte>();
  Fill(base, 16 << 20);
  const int64_t tile = TileBytes(k.weight);
  const int64_t stride = RecordBytes(k.rows, kK);
  std::vector<const std::byte*> rows;
  for (int i = 0; i < 120; ++i) rows.push_back(base + (4 << 20) + i * stride);
  auto* sums = reinterpret_cast<float*>(base + (15 << 20));
  const double peak = k.isa == Isa::kAmx ? limits.bf16_gflops : k.bf16_dot ? limits.bf16_dot_gflops : k.rows == RowFormat::kF32 ? limits.f32_gflops : limits.int8_gops;
  std::printf("%-34s", k.name);
  for (const int64_t m : {1, 2, 4, 8, 12, 24, 32, 60, 120}) {
    const GemmCall call{{{base, k.decode, 128, false}, {base + tile, k.decode, 128, false}}, kK, rows.data(), m, sums};
    const double t = Best([&] { k.gemm(call); });
    const double ops = 2.0 * kPair * kK * static_cast<double>(m);
    if (m == 1) std::printf("  M=1 %5.2f us %5.2f GB/s |", t * 1e6, 2 * static_cast<double>(tile) / t * 1e-9);
    else std::printf("  M=%ld %6.1f (%4.1f%%)", static_cast<long>(m), ops / t * 1e-9, ops / t * 1e-7 / peak);
  }
  std::printf("\n");
}

}  // namespace
}  // namespace halfbyte

int main(int argc, char** argv) {
  using namespace halfbyte;
  platform::SetThreads(1);
  const auto limits = kernels::cpu::MeasureLimits(2.0);
  std::printf("one core: F32 %.0f, BF16 %.0f (vdpbf16ps %.0f) GFLOP/s, INT8 %.0f Gop/s, read %.1f GB/s\n", limits.f32_gflops, limits.bf16_gflops, limits.bf16_dot_gflops, limits.int8_gops, limits.read_gb_per_second);
  for (const MoeKernel* k : AvailableKernels()) {
    if (argc < 2 || std::string(k->name).find(argv[1]) != std::string::npos) Measure(*k, limits);
  }
}
