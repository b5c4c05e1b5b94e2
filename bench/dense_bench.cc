// Dense layers and attention on the cpu backend, each beside the limit that binds it.
//
//   dense_bench [--threads N] [--filter TEXT] [--seconds 0.4] [--mib 1024] [--kernel op=name]...
//
// A line is one (operation, format, rows): the time of a call, bytes and operations moved in it, and the share of
//   max(bytes / read bandwidth, operations / peak)
// with the bandwidth and the peaks measured right before and right after (the better of the two counts). Weights of a shape are
// made several times, until together they exceed --mib, and used in turn, so that no cache holds them between two calls. Bytes:
// the weights as packed, or K and V.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/check.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/limits/limits.h"
#include "numerics/bf16.h"
#include "platform/parallel.h"

namespace halfbyte {
namespace {

using tensor::DType;
using tensor::Format;
using tensor::Matrix;
using tensor::MutableMatrix;
using tensor::QuantizedMatrix;

struct Options {
  kernels::BackendOptions backend;
  std::string filter;
  double seconds = 0.4;
  int64_t mib = 1024;
};

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Median seconds of one call of body(i), over rounds that fill `seconds`.
double MedianSeconds(double seconds, const std::function<void(int64_t)>& body) {
  std::vector<double> times;
  body(0);
  const double start = Now();
  for (int64_t i = 1; times.size() < 5 || Now() - start < seconds; ++i) {
    double begin = Now();
    body(i);
    times.push_back(Now() - begin);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

class Bench {
 public:
  explicit Bench(Options options) : options_(std::move(options)) {
    auto made = kernels::CreateCpuBackend(options_.backend);
    if (!made) {
      std::fprintf(stderr, "%s\n", made.error().ToString().c_str());
      std::exit(1);
    }
    backend_ = std::move(*made);
    for (const auto& [op, name] : backend_->Kernels()) std::printf("%s %s\n", op.c_str(), name.c_str());
    std::printf("%d threads\n", platform::Threads());
    std::printf("%-44s %9s %8s %9s %7s | %7s %8s\n", "operation", "us", "GB/s", "GFLOP/s", "share", "read", "peak");
  }

  void Run() {
    for (const Format& f :
         {Format::Bf16(), Format::Fp8Block(128, 128), Format::Fp8(tensor::Outer::kPerRow), Format::Nvfp4(), Format::F32()}) {
      Linear("qkv", f, 5120, 2048);
      Linear("o", f, 2048, 4096);
      Linear("lm_head", f, 32768, 2048);
    }
    for (DType kv : {DType::kBF16, DType::kF8E4M3}) {
      for (int64_t context : {512, 4096, 16384}) Decode(kv, context, 1);
      Decode(kv, 512, 8);
      for (int64_t rows : {512, 2048}) Prefill(kv, rows);
    }
  }

 private:
  void Report(const std::string& what, double bytes, double flop, const std::function<void(int64_t)>& body) {
    const auto before = kernels::cpu::MeasureLimits(0.3);
    const double seconds = MedianSeconds(options_.seconds, body);
    const auto after = kernels::cpu::MeasureLimits(0.3);
    const double read = std::max(before.read_gb_per_second, after.read_gb_per_second) * 1e9;
    // The better of the two ways to multiply BF16 numbers (on Intel FMAs beat vdpbf16ps).
    const double peak = std::max({before.bf16_gflops, after.bf16_gflops, before.f32_gflops, after.f32_gflops}) * 1e9;
    double share = std::max(bytes / read, flop / peak) / seconds;
    std::printf("%-44s %9.1f %8.1f %9.1f %6.1f%% | %7.1f %8.1f\n", what.c_str(), seconds * 1e6, bytes / seconds / 1e9,
                flop / seconds / 1e9, share * 100, read / 1e9, peak / 1e9);
    std::fflush(stdout);
  }

  bool Wanted(const std::string& what) const { return what.find(options_.filter) != std::string::npos; }

  void Linear(const std::string& name, const Format& format, int64_t n, int64_t k) {
    if (!Wanted(name + " " + format.ToString())) return;
    const int64_t bytes = backend_->LinearBytes(format, n, k), copies = std::max<int64_t>(1, (options_.mib << 20) / bytes);
    std::vector<std::unique_ptr<kernels::LinearWeight>> weights;
    for (int64_t i = 0; i < copies; ++i) weights.push_back(MakeWeight(format, n, k));
    for (int64_t rows : {1, 2, 4, 8, 16, 32, 64, 512}) {
      const bool prompt = rows >= 64, exact = format.elem == DType::kF32;
      std::vector<float> x(static_cast<size_t>(rows * k), 0.5f), out(static_cast<size_t>(rows * n));
      std::vector<uint16_t> x16(x.size(), numerics::FloatToBf16(0.5f));
      Matrix in = exact ? Matrix(x.data(), DType::kF32, rows, k) : Matrix(x16.data(), DType::kBF16, rows, k);
      std::string what =
          base::StrCat(name, " ", format.ToString(), " ", n, "x", k, ", ", rows, prompt ? " prompt" : " generated");
      Report(what, static_cast<double>(bytes), 2.0 * static_cast<double>(rows * n * k), [&](int64_t i) {
        kernels::LinearPart part{weights[static_cast<size_t>(i % copies)].get(), nullptr,
                                 MutableMatrix(out.data(), DType::kF32, rows, n), false};
        backend_->Linear({in, prompt ? rows : 0, {&part, 1}});
      });
    }
  }

  std::unique_ptr<kernels::LinearWeight> MakeWeight(const Format& format, int64_t n, int64_t k) {
    auto weight = std::move(*backend_->CreateLinear(format, n, k));
    // One part of some rows, packed over and over: the values do not matter, the layout does. 1 in 8,000 FP8 codes is a
    // subnormal, as in weights of real models.
    const int64_t part_rows = 128;
    std::vector<uint8_t> elements(static_cast<size_t>(part_rows * k) * 4), scales(static_cast<size_t>(part_rows * k / 16) * 4);
    std::vector<float> outer(static_cast<size_t>(part_rows), 1.0f);
    uint32_t state = 1;
    auto random = [&] { return state = state * 1664525u + 1013904223u, state >> 8; };
    if (format.is_fp8()) {
      for (uint8_t& e : elements)
        e = static_cast<uint8_t>((random() & 0x80) | (random() % 8000 == 0 ? random() % 8 : 0x20 + random() % 0x40));
    } else if (format.is_nvfp4()) {
      for (uint8_t& e : elements) e = static_cast<uint8_t>(random());
      for (uint8_t& s : scales) s = 0x38;
    } else if (format.elem == DType::kBF16) {
      for (size_t i = 0; i < elements.size() / 2; ++i)
        reinterpret_cast<uint16_t*>(elements.data())[i] = static_cast<uint16_t>(0x3C00 + (random() & 0x80FF));
    } else {
      for (size_t i = 0; i < elements.size() / 4; ++i) reinterpret_cast<float*>(elements.data())[i] = 0.01f;
    }
    if (format.block_scale == DType::kF32)
      for (size_t i = 0; i < scales.size() / 4; ++i) reinterpret_cast<float*>(scales.data())[i] = 0.01f;
    for (int64_t row = 0; row < n; row += part_rows) {
      QuantizedMatrix part{format, std::min(part_rows, n - row), k, elements.data(), scales.data(), outer.data()};
      HB_CHECK(backend_->PackLinear(*weight, row, part).has_value());
    }
    return weight;
  }

  // One layer's cache of 4 KV heads of 128, 32 query heads: Qwen3-30B-A3B.
  struct Layer {
    kernels::KvLayer kv;
    tensor::Buffer memory;
    std::vector<int32_t> blocks;
  };
  static constexpr int64_t kHeads = 32, kKvHeads = 4, kHeadDim = 128, kBlock = 64;

  Layer MakeLayer(DType dtype, int64_t tokens) {
    Layer l;
    l.kv.spec = {kKvHeads, kHeadDim, kBlock, dtype};
    l.kv.blocks = (tokens + kBlock - 1) / kBlock;
    l.memory = std::move(*backend_->Allocate(static_cast<size_t>(l.kv.blocks * KvBlockBytes(l.kv.spec))));
    l.kv.data = l.memory.as<std::byte>();
    std::memset(l.kv.data, 0x22, l.memory.bytes());  // touches the pages; some small finite value in every format
    for (int64_t b = 0; b < l.kv.blocks; ++b) l.blocks.push_back(static_cast<int32_t>(b));
    return l;
  }

  void Attend(const std::vector<kernels::SequenceRows>& sequences, const Layer& l, int64_t rows, int64_t prompt_rows) {
    kernels::AttentionOp op;
    op.batch = {rows, prompt_rows, sequences};
    op.heads = kHeads;
    op.kv_heads = kKvHeads;
    op.head_dim = kHeadDim;
    op.scale = 0.088f;
    q_.assign(static_cast<size_t>(rows * kHeads * kHeadDim), 0x3F00);
    out_.resize(q_.size());
    op.q = Matrix(q_.data(), DType::kBF16, rows, kHeads * kHeadDim);
    op.out = MutableMatrix(out_.data(), DType::kBF16, rows, kHeads * kHeadDim);
    op.kv = l.kv;
    backend_->Attention(op);
  }

  void Decode(DType dtype, int64_t context, int64_t batch) {
    std::string what = base::StrCat("attention ", tensor::DTypeName(dtype), ", decode at ", context, ", batch ", batch);
    if (!Wanted(what)) return;
    const int64_t bytes = 2 * context * kKvHeads * kHeadDim * tensor::DTypeBits(dtype) / 8 * batch;
    std::vector<Layer> layers;
    for (int64_t i = 0; i < std::max<int64_t>(1, (options_.mib << 20) / bytes); ++i)
      layers.push_back(MakeLayer(dtype, context * batch));
    Report(what, static_cast<double>(bytes), 4.0 * static_cast<double>(context * batch * kHeads * kHeadDim), [&](int64_t i) {
      const Layer& l = layers[static_cast<size_t>(i) % layers.size()];
      std::vector<kernels::SequenceRows> s;
      for (int64_t b = 0; b < batch; ++b) s.push_back({b, 1, context - 1, l.blocks.data() + b * context / kBlock});
      Attend(s, l, batch, 0);
    });
  }

  void Prefill(DType dtype, int64_t rows) {
    std::string what = base::StrCat("attention ", tensor::DTypeName(dtype), ", prefill of ", rows);
    if (!Wanted(what)) return;
    Layer l = MakeLayer(dtype, rows);
    Report(what, 0, 2.0 * static_cast<double>(rows * (rows + 1) * kHeads * kHeadDim), [&](int64_t) {
      std::vector<kernels::SequenceRows> s{{0, rows, 0, l.blocks.data()}};
      Attend(s, l, rows, rows);
    });
  }

  Options options_;
  std::unique_ptr<kernels::Backend> backend_;
  std::vector<uint16_t> q_, out_;
};

}  // namespace
}  // namespace halfbyte

int main(int argc, char** argv) {
  halfbyte::Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string flag = argv[i], value = argv[i + 1];
    if (flag == "--threads") options.backend.threads = std::stoi(value);
    else if (flag == "--filter") options.filter = value;
    else if (flag == "--seconds") options.seconds = std::stod(value);
    else if (flag == "--mib") options.mib = std::stoll(value);
    else if (flag == "--kernel" && value.find('=') != std::string::npos)
      options.backend.kernels.emplace_back(value.substr(0, value.find('=')), value.substr(value.find('=') + 1));
    else {
      std::fprintf(stderr, "unknown flag %s\n", flag.c_str());
      return 2;
    }
  }
  halfbyte::Bench(options).Run();
}
