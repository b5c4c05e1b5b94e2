#include "kernels/cpu/limits/limits.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "base/check.h"
#include "kernels/cpu/limits/probes.h"
#include "platform/cpu_features.h"
#include "platform/parallel.h"
#include "tensor/buffer.h"

namespace halfbyte::kernels::cpu {
namespace {

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::atomic<float> g_sink;  // keeps the compiler from dropping the work

// Units a second of `unit(part)` run by every thread at once, repeated until `seconds` are over; the best repetition counts, since a
// neighbour only ever slows a probe down.
template <typename Unit>
double BestRate(double seconds, double units, const Unit& unit) {
  const int threads = platform::Threads();
  double best = 0;
  const double end = Now() + seconds;
  do {
    const double begin = Now();
    platform::ParallelFor(threads, 1, [&](int64_t b, int64_t e) { for (int64_t i = b; i < e; ++i) g_sink = unit(i, threads); });
    best = std::max(best, units / (Now() - begin));
  } while (Now() < end);
  return best;
}

double Rate(const Probe& probe, double seconds) {
  constexpr int64_t kRounds = 20000;  // about 0.1 ms: short enough to fit between the turns of a neighbour
  const double units = static_cast<double>(probe.operations) * kRounds * platform::Threads();
  return BestRate(seconds, units, [&](int64_t, int) { return probe.run(kRounds); }) * 1e-9;
}

}  // namespace

double MeasureRead(double seconds) {
  // Far larger than any L3 slice that a guest owns; the largest known L3 of one socket is 1.1 GiB, and there the figure is L3's.
  constexpr int64_t kBytes = int64_t{1} << 30, kChunk = int64_t{1} << 20;
  static tensor::Buffer buffer;
  if (buffer.bytes() == 0) {
    auto made = tensor::Buffer::Host(kBytes);
    HB_CHECK(made.has_value(), "no memory for the read probe");
    buffer = std::move(*made);
    auto* p = buffer.as<unsigned char>();  // zero pages that were never written are all one page
    platform::ParallelFor(kBytes / kChunk, 1, [&](int64_t b, int64_t e) { std::fill(p + b * kChunk, p + e * kChunk, static_cast<unsigned char>(1)); });
  }
  const auto* data = buffer.as<std::byte>();
  return BestRate(seconds, kBytes, [&](int64_t i, int threads) {
           const int64_t begin = kBytes / kChunk * i / threads, end = kBytes / kChunk * (i + 1) / threads;
           return ReadProbeAvx2(data + begin * kChunk, (end - begin) * kChunk);
         }) * 1e-9;
}

double MeasureInt8(double seconds) {
  return Rate(platform::Cpu().HasAvx512Vnni() ? Int8ProbeAvx512Vnni() : Int8ProbeAvx2(), seconds);
}

MachineLimits Higher(const MachineLimits& a, const MachineLimits& b) {
  MachineLimits h;
  for (double MachineLimits::* field : {&MachineLimits::read_gb_per_second, &MachineLimits::f32_gflops, &MachineLimits::bf16_gflops, &MachineLimits::int8_gops, &MachineLimits::bf16_dot_gflops})
    h.*field = std::max(a.*field, b.*field);
  return h;
}

MachineLimits MeasureLimits(double seconds) {
  const platform::CpuFeatures& cpu = platform::Cpu();
  HB_CHECK(cpu.HasAvx2(), "the probes need AVX2");
  MachineLimits limits;
  limits.f32_gflops = Rate(cpu.HasAvx512() ? F32ProbeAvx512() : F32ProbeAvx2(), seconds / 4);
  limits.bf16_dot_gflops = cpu.HasAvx512Bf16() ? Rate(Bf16ProbeAvx512Bf16(), seconds / 8) : 0;
  limits.bf16_gflops = std::max(limits.f32_gflops, limits.bf16_dot_gflops);
  if (cpu.HasAmxBf16()) limits.bf16_gflops = std::max(limits.bf16_gflops, Rate(Bf16ProbeAmx(), seconds / 8));
  limits.int8_gops = MeasureInt8(seconds / 4);
  limits.read_gb_per_second = MeasureRead(seconds / 4);
  return limits;
}

}  // namespace halfbyte::kernels::cpu
