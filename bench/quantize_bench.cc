// Conversion speed: BF16 weights in the page cache to NVFP4, amax pass included, against this machine's read bandwidth.
//
//   quantize_bench [--threads 2] [--mib 1024] [--repeat 5] [--dir /tmp] [--variant avx512]
//
// Each thread takes matrices of 2048 x 768 (an expert of Qwen3-30B-A3B) from a file in turn: pread into a reused buffer, amax,
// quantize into a reused buffer. Rows: in memory (the buffer is already there) and from the page cache. Before and after each
// measurement a probe reads memory with the same threads; the share is bytes moved (2 read, 0.5625 written an element) over the
// better probe. "a core" is elements per second of processor time, which tells the kernel's speed also where other work shares the
// cores. Medians over --repeat. At the end the error of each contract on Gaussian weights
// (with --mib 0 nothing else).
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "kernels/api/weight_quantizer.h"
#include "numerics/bf16.h"
#include "numerics/distortion.h"

namespace halfbyte {
namespace {

using numerics::Flavour;
using numerics::WeightContract;

constexpr int64_t kRows = 768, kCols = 2048, kMatrix = kRows * kCols;  // 3 MiB of BF16

struct Options {
  int threads = static_cast<int>(std::thread::hardware_concurrency());
  int64_t mib = 1024;
  int repeat = 5;
  std::string dir = "/tmp";
  std::string variant;
};

double Seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double ThreadCpuSeconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double Median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// Runs body(thread) on all threads; seconds from start to the last end.
double Parallel(int threads, const std::function<void(int)>& body) {
  const double start = Seconds();
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t) pool.emplace_back(body, t);
  for (std::thread& t : pool) t.join();
  return Seconds() - start;
}

// GB/s of summing a buffer far larger than the caches.
double ReadProbe(const std::vector<uint64_t>& buffer, int threads) {
  std::atomic<uint64_t> sink = 0;
  double best = 1e9;
  for (int round = 0; round < 3; ++round) {
    best = std::min(best, Parallel(threads, [&](int t) {
      const size_t n = buffer.size() / threads, begin = n * t;
      uint64_t sums[8] = {};
      for (size_t i = begin; i + 8 <= begin + n; i += 8) for (int k = 0; k < 8; ++k) sums[k] += buffer[i + k];
      for (uint64_t s : sums) sink += s;
    }));
  }
  return static_cast<double>(buffer.size() * 8) / best / 1e9;
}

struct Workspace {
  std::vector<uint16_t> in = std::vector<uint16_t>(kMatrix);
  std::vector<uint8_t> codes = std::vector<uint8_t>(kMatrix / 2), scales = std::vector<uint8_t>(kMatrix / 16);
};

void Convert(const kernels::WeightQuantizer& q, const WeightContract& contract, const uint16_t* in, Workspace& w) {
  const numerics::AmaxResult amax = q.amax(in, tensor::DType::kBF16, kMatrix);
  q.quantize(contract, in, tensor::DType::kBF16, kRows, kCols, GlobalScaleFor(contract, amax.amax), w.codes.data(), w.scales.data());
}

struct Row {
  const char* name;
  WeightContract contract;
};

std::vector<Row> Rows() {
  return {{"load-time 4over6", WeightContract::Online()},
          {"modelopt", WeightContract::Modelopt(Flavour::kCuda)},
          {"modelopt 4over6", WeightContract::ModeloptFourOverSix(Flavour::kCuda)},
          {"modelopt sweep", WeightContract::ModeloptSweep(Flavour::kCuda)}};
}

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options), matrices_(std::max<int64_t>(options.threads, options.mib * (1 << 20) / (kMatrix * 2))) {
    std::mt19937_64 rng(1);
    std::normal_distribution<float> gauss(0, 0.02f);
    std::vector<uint16_t> one(kMatrix);
    for (uint16_t& v : one) v = numerics::FloatToBf16(gauss(rng));
    source_.resize(matrices_ * kMatrix / 4);
    for (int64_t m = 0; m < matrices_; ++m) std::memcpy(source_.data() + m * kMatrix / 4, one.data(), kMatrix * 2);
    path_ = options.dir + "/halfbyte_quantize_bench." + std::to_string(getpid());
    file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    HB_CHECK(file_ >= 0, "cannot create ", path_);
    unlink(path_.c_str());
    for (int64_t m = 0; m < matrices_; ++m) HB_CHECK(pwrite(file_, one.data(), kMatrix * 2, m * kMatrix * 2) == kMatrix * 2, "write to ", path_);
  }
  ~Bench() { close(file_); }

  void Measure(const kernels::WeightQuantizer& q, const Row& row, bool from_file) {
    std::vector<double> rates, core_rates, shares, probes;
    for (int r = 0; r < options_.repeat; ++r) {
      const double before = ReadProbe(source_, options_.threads);
      std::atomic<int64_t> next = 0;
      std::atomic<double> cpu_seconds = 0;
      const double seconds = Parallel(options_.threads, [&](int) {
        Workspace w;
        const double start = ThreadCpuSeconds();
        for (int64_t m; (m = next++) < matrices_;) {
          const uint16_t* in = reinterpret_cast<const uint16_t*>(source_.data()) + m * kMatrix;
          if (from_file) {
            HB_CHECK(pread(file_, w.in.data(), kMatrix * 2, m * kMatrix * 2) == kMatrix * 2, "read");
            in = w.in.data();
          }
          Convert(q, row.contract, in, w);
        }
        cpu_seconds += ThreadCpuSeconds() - start;
      });
      const double probe = std::max(before, ReadProbe(source_, options_.threads));
      const double elements = static_cast<double>(matrices_ * kMatrix);
      rates.push_back(elements / seconds / 1e9);
      core_rates.push_back(elements / cpu_seconds / 1e9);
      probes.push_back(probe);
      shares.push_back(elements * 2.5625 / seconds / 1e9 / probe);
    }
    std::printf("%-8s %-22s %-12s %2d threads  %6.2f G elements/s (%.2f a core)  %6.2f GB/s  %5.1f %% of the %.1f GB/s that a read loop gets\n",
                q.name, row.name, from_file ? "page cache" : "memory", options_.threads, Median(rates), Median(core_rates), Median(rates) * 2.5625, 100 * Median(shares), Median(probes));
  }

 private:
  Options options_;
  int64_t matrices_;
  std::vector<uint64_t> source_;
  std::string path_;
  int file_ = -1;
};

void PrintErrors() {
  std::mt19937_64 rng(2);
  std::normal_distribution<float> gauss(0, 0.02f);
  std::vector<float> x(256 * 1024), decoded(x.size());
  for (float& v : x) v = numerics::RoundToBf16(gauss(rng));
  std::vector<uint8_t> codes(x.size() / 2), scales(x.size() / 16);
  for (const Row& row : Rows()) {
    const numerics::GlobalScale scale = GlobalScaleFor(row.contract, numerics::Amax(x).amax);
    numerics::QuantizeMatrix(row.contract, x.data(), 256, 1024, scale, codes.data(), scales.data());
    numerics::DecodeMatrix(codes.data(), scales.data(), scale.ws2, 256, 1024, decoded.data());
    const numerics::Distortion d = numerics::Measure(decoded, x);
    std::printf("%-22s relative RMSE %.4f on Gaussian weights (%.1f dB)\n", row.name, d.relative_rmse, d.sqnr_db);
  }
}

Options Parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    if (flag == "--threads") o.threads = std::atoi(value.c_str());
    if (flag == "--mib") o.mib = std::atoll(value.c_str());
    if (flag == "--repeat") o.repeat = std::atoi(value.c_str());
    if (flag == "--dir") o.dir = value;
    if (flag == "--variant") o.variant = value;
  }
  return o;
}

void Measure(const Options& options) {
  Bench bench(options);
  for (const kernels::WeightQuantizer* q : kernels::WeightQuantizers()) {
    if (!options.variant.empty() ? options.variant != q->name : std::string(q->name) == "scalar") continue;
    for (const Row& row : Rows()) {
      for (bool from_file : {false, true}) bench.Measure(*q, row, from_file);
    }
  }
}

void Main(const Options& options) {
  if (options.mib > 0) Measure(options);
  PrintErrors();
}

}  // namespace
}  // namespace halfbyte

int main(int argc, char** argv) {
  halfbyte::Main(halfbyte::Parse(argc, argv));
  return 0;
}
