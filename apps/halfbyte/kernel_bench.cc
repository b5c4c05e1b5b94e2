#include "kernel_bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/check.h"
#include "kernels/create_backend.h"
#include "platform/parallel.h"

namespace halfbyte::app {
namespace {

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double PeakOf(Peak peak, const kernels::cpu::MachineLimits& l) {
  return 1e9 * (peak == Peak::kInt8 ? l.int8_gops : peak == Peak::kF32 ? l.f32_gflops : l.bf16_gflops);
}

double RelativeRms(const std::vector<float>& got, const std::vector<float>& want) {
  double error = 0, size = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    error += std::pow(double{got[i]} - want[i], 2);
    size += std::pow(double{want[i]}, 2);
  }
  return std::sqrt(error / size);  // NaN for a NaN, and for a result of zeros only
}

}  // namespace

KernelBench::KernelBench(const KernelBenchOptions& options, Context& context) : options_(options), context_(context) {
  reference_ = std::move(*kernels::CreateBackend("reference", {}));
}

std::unique_ptr<kernels::Backend> KernelBench::BackendWith(const kernels::CpuKernel& kernel) const {
  auto made = kernels::CreateBackend("cpu", {.threads = 0, .kernels = {{kernel.op, kernel.name}}});
  HB_CHECK(made.has_value(), made ? "" : made.error().ToString());
  return std::move(*made);
}

void KernelBench::Begin(const kernels::CpuKernel& kernel) {
  kernel_ = kernel;
  lines_.clear();
  checks_ = base::Json::MakeArray();
  if (!options_.check_only) before_ = kernels::cpu::MeasureLimits(0.5);
}

void KernelBench::Measure(const KernelCase& c) {
  constexpr size_t kLeast = 5;
  std::vector<double> times;
  c.run(0);  // workspaces grow
  const double end = Now() + options_.seconds;
  for (int64_t i = 1; times.size() < kLeast || Now() < end; ++i) {
    const double begin = Now();
    c.run(i);
    times.push_back(Now() - begin);
  }
  std::sort(times.begin(), times.end());
  lines_.push_back({c, times[times.size() / 2], times[0]});
}

void KernelBench::Check(const std::string& what, const std::vector<float>& got, const std::vector<float>& want, double bound) {
  const double error = RelativeRms(got, want);
  const bool right = error <= bound;
  if (!right) wrong_.push_back(base::StrCat(kernel_.name, " (", what, "): relative RMS ", error, ", at most ", bound, " is right"));
  base::Json check = base::Json::MakeObject();
  check.Set("case", what);
  check.Set("relative_rms", error);
  check.Set("bound", bound);
  check.Set("right", right);
  checks_.Push(std::move(check));
  if (!context_.json) context_.out.Format("%-36s %-28s %s: relative RMS %.2g from reference\n", kernel_.name.c_str(), what.c_str(), right ? "right" : "WRONG", error);
}

void KernelBench::End() {
  base::Json kernel = base::Json::MakeObject(), cases = base::Json::MakeArray();
  kernel.Set("op", kernel_.op);
  kernel.Set("name", kernel_.name);
  kernel.Set("checks", std::move(checks_));
  if (!lines_.empty()) {
    const kernels::cpu::MachineLimits limits = kernels::cpu::Higher(before_, kernels::cpu::MeasureLimits(0.5));
    const double read = limits.read_gb_per_second * 1e9;
    for (const Line& l : lines_) {
      const double peak = PeakOf(l.of.peak, limits), limit = std::max(l.of.bytes / read, l.of.flop / peak);
      if (!context_.json)
        context_.out.Format("%-36s %-28s %10.1f us %6.1f GB/s %8.1f Gop/s, %5.1f %% of the limit (%s; best call %.1f %%)\n", kernel_.name.c_str(), l.of.what.c_str(),
                    l.median * 1e6, l.of.bytes / l.median / 1e9, l.of.flop / l.median / 1e9, 100 * limit / l.median,
                    l.of.bytes / read > l.of.flop / peak ? "memory" : "arithmetic", 100 * limit / l.best);
      base::Json line = base::Json::MakeObject();
      line.Set("case", l.of.what);
      line.Set("seconds", l.median);
      line.Set("best_seconds", l.best);
      line.Set("bytes", l.of.bytes);
      line.Set("flop", l.of.flop);
      line.Set("share_of_limit", limit / l.median);
      cases.Push(std::move(line));
    }
    kernel.Set("read_gb_per_second", limits.read_gb_per_second);
    kernel.Set("peak_gops", PeakOf(lines_[0].of.peak, limits) / 1e9);
    if (!context_.json)
      context_.out.Format("  machine: read %.1f GB/s, FP32 %.0f, BF16 %.0f GFLOP/s, INT8 %.0f Gop/s\n", limits.read_gb_per_second, limits.f32_gflops, limits.bf16_gflops,
                  limits.int8_gops);
  }
  kernel.Set("cases", std::move(cases));
  out_.Push(std::move(kernel));
}

base::Status KernelBench::Finish() {
  if (context_.json) {
    base::Json all = base::Json::MakeObject();
    all.Set("threads", platform::Threads());
    all.Set("kernels", std::move(out_));
    context_.out.Json(all, 1);
  }
  if (wrong_.empty()) return {};
  std::string list;
  for (const std::string& w : wrong_) list += (list.empty() ? "" : "; ") + w;
  return base::Fail(base::ErrorCode::kInternal, wrong_.size(), " results differ from reference: ", list);
}

base::Status BenchKernels(const KernelBenchOptions& options, Context& context) {
  if (options.threads > 0) platform::SetThreads(options.threads);
  KernelBench bench(options, context);
  bool any = false;
  for (const kernels::CpuKernel& k : kernels::CpuKernels()) {
    if (k.name.find(options.filter) == std::string::npos) continue;
    any = true;
    bench.Begin(k);
    if (k.op == "moe_gemm") BenchMoeKernel(bench, k);
    else if (k.op == "linear") BenchLinearKernel(bench, k);
    else BenchAttentionKernel(bench, k);
    bench.End();
    HB_RETURN_IF_ERROR(context.out.Flush());
  }
  if (!any) return base::Fail(base::ErrorCode::kInvalidArgument, "no kernel of this machine has \"", options.filter, "\" in its name");
  return bench.Finish();
}

}  // namespace halfbyte::app
