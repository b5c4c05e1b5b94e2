// halfbyte bench --kernels: each kernel of the tables that this machine can run, alone, beside what the machine allows, and checked against `reference`.
//
// A case is one operation at one size. Its limit is max(bytes / read bandwidth, operations / peak of the arithmetic its kernel uses), with the machine measured
// right before and after a kernel's cases (the higher figure counts). Weights are made several times over and used in turn, so that no cache holds them
// between two calls. The median of the calls counts; the best one is what it would be without neighbours.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "commands.h"
#include "kernels/api/backend.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/limits/limits.h"

namespace halfbyte::app {

struct KernelBenchOptions {
  std::string filter;     // only kernels whose name holds it
  double seconds = 0.3;   // a case
  bool check_only = false;
  int threads = 0;
  std::vector<int64_t> shape = {2048, 768, 128, 8};  // hidden, expert width, experts, top_k: those of Qwen3-30B-A3B
};

// Which probe an operation's arithmetic is held against.
enum class Peak { kF32, kBf16, kInt8 };

struct KernelCase {
  std::string what;  // "512 rows, prompt, even"
  double bytes = 0, flop = 0;  // a call
  Peak peak = Peak::kBf16;
  std::function<void(int64_t)> run;  // i: which of the copies
};

// Runs and reports the cases of one kernel after another.
class KernelBench {
 public:
  KernelBench(const KernelBenchOptions& options, Context& context);

  const KernelBenchOptions& options() const { return options_; }
  // A backend in which `kernel` is preferred wherever it can serve.
  std::unique_ptr<kernels::Backend> BackendWith(const kernels::CpuKernel& kernel) const;
  kernels::Backend& reference() const { return *reference_; }

  // Begins the cases of a kernel: measures the machine.
  void Begin(const kernels::CpuKernel& kernel);
  void Measure(const KernelCase& c);
  // A result beside reference's: relative RMS, at most `bound` where it is right.
  void Check(const std::string& what, const std::vector<float>& got, const std::vector<float>& want, double bound);
  // Prints what Begin's kernel did.
  void End();
  // The JSON, and an error that names the kernels which did not agree.
  base::Status Finish();

 private:
  struct Line {
    KernelCase of;
    double median = 0, best = 0;
  };
  const KernelBenchOptions& options_;
  Context& context_;
  std::unique_ptr<kernels::Backend> reference_;
  kernels::CpuKernel kernel_;
  kernels::cpu::MachineLimits before_;
  std::vector<Line> lines_;
  base::Json out_ = base::Json::MakeArray(), checks_;
  std::vector<std::string> wrong_;
};

void BenchMoeKernel(KernelBench& bench, const kernels::CpuKernel& kernel);
void BenchLinearKernel(KernelBench& bench, const kernels::CpuKernel& kernel);
void BenchAttentionKernel(KernelBench& bench, const kernels::CpuKernel& kernel);

base::Status BenchKernels(const KernelBenchOptions& options, Context& context);

}  // namespace halfbyte::app
