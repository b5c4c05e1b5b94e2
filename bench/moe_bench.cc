// The routed experts of one layer on the CPU: time, bytes and operations of each call, and the share of this machine's limits.
//
//   moe_bench [--threads N] [--kernel NAME]... [--mode w4a16,w4a8,nvfp4_online,modelopt_fp4,exact,bf16] [--tokens 1,2,4,8,16,64,512]
//             [--class prompt|generated|both] [--routing even,skewed,one] [--shape D,F,E,K] [--layers N] [--seconds S]
//
// A line's limit is max(bytes / read bandwidth, operations / peak of the arithmetic used): bytes of the experts touched as packed, 2 * 3 * D * F
// operations a routed row. Both probes run before and after each line, and the higher one counts. Layers are rotated so that the weights of a call were
// not in cache. The median counts; the best call is what it would be without neighbours.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <sstream>

#include "base/check.h"
#include "kernels/cpu/limits/limits.h"
#include "kernels/cpu/moe/moe.h"
#include "numerics/bf16.h"
#include "platform/parallel.h"

namespace halfbyte {
namespace {

using kernels::ActivationForm;
using kernels::ExpertPart;
using tensor::DType;
using tensor::Format;

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Mode {
  const char* name;
  ActivationForm form;
  Format format;
  DType x;
  bool round_hidden;
};
const Mode kModes[] = {{"w4a16", ActivationForm::kPlain, Format::Nvfp4(), DType::kBF16, true},
                       {"w4a8", ActivationForm::kInt8Groups, Format::Nvfp4(), DType::kBF16, true},
                       {"nvfp4_online", ActivationForm::kNvfp4PerToken, Format::Nvfp4(), DType::kBF16, true},
                       {"modelopt_fp4", ActivationForm::kNvfp4Static, Format::Nvfp4(), DType::kBF16, false},
                       {"exact", ActivationForm::kPlain, Format::Nvfp4(), DType::kF32, false},
                       {"bf16", ActivationForm::kPlain, Format::Bf16(), DType::kBF16, true},
                       {"fp8", ActivationForm::kPlain, Format::Fp8Block(128, 128), DType::kBF16, true}};

struct Options {
  int threads = 0, layers = 4;
  double seconds = 0.4;
  int64_t d = 2048, f = 768, experts = 128, top_k = 8;
  std::vector<std::string> modes, kernels, routings = {"even"};
  std::vector<int64_t> tokens = {1, 2, 4, 8, 16, 64, 512};
  std::string row_class = "both";
};

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) out.push_back(part);
  return out;
}

Options Parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    if (flag == "--threads") o.threads = std::stoi(value);
    else if (flag == "--layers") o.layers = std::stoi(value);
    else if (flag == "--seconds") o.seconds = std::stod(value);
    else if (flag == "--kernel") o.kernels.push_back(value);
    else if (flag == "--mode") o.modes = Split(value);
    else if (flag == "--class") o.row_class = value;
    else if (flag == "--routing") o.routings = Split(value);
    else if (flag == "--tokens") { o.tokens.clear(); for (const auto& t : Split(value)) o.tokens.push_back(std::stoll(t)); }
    else if (flag == "--shape") { const auto s = Split(value); o.d = std::stoll(s[0]); o.f = std::stoll(s[1]); o.experts = std::stoll(s[2]); o.top_k = std::stoll(s[3]); }
    else HB_CHECK(false, "unknown flag ", flag);
  }
  return o;
}

// Random bits that are sane numbers in the format.
std::vector<uint8_t> RandomElements(const Format& f, int64_t n, std::mt19937& rng) {
  std::vector<uint8_t> bytes(static_cast<size_t>(n * tensor::DTypeBits(f.elem) / 8));
  if (f.elem == DType::kBF16) {
    std::normal_distribution<float> normal(0, 0.02f);
    auto* p = reinterpret_cast<uint16_t*>(bytes.data());
    for (int64_t i = 0; i < n; ++i) p[i] = numerics::FloatToBf16(normal(rng));
  } else {
    for (auto& b : bytes) b = static_cast<uint8_t>(rng() & (f.elem == DType::kF8E4M3 ? 0xBF : 0xFF));
  }
  return bytes;
}

std::vector<std::unique_ptr<kernels::ExpertsWeight>> MakeLayers(const Options& o, const Mode& mode) {
  std::mt19937 rng(1);
  kernels::ExpertsSpec spec{.experts = o.experts, .d = o.d, .f = o.f, .activations = mode.form, .round_hidden = mode.round_hidden};
  spec.formats.assign(static_cast<size_t>(o.experts), {mode.format, mode.format, mode.format});
  kernels::BackendOptions backend;
  for (const auto& k : o.kernels) backend.kernels.emplace_back("moe_gemm", k);
  const auto elements = RandomElements(mode.format, o.d * o.f, rng);
  std::vector<uint8_t> scales(static_cast<size_t>(o.d * o.f / 16));
  for (auto& s : scales) s = static_cast<uint8_t>(0x30 + rng() % 0x20);
  if (mode.format.block_scale == DType::kF32) {
    auto* s = reinterpret_cast<float*>(scales.data());
    for (size_t i = 0; i < scales.size() / 4; ++i) s[i] = 0.001f;
  }
  const float outer = 0.002f;
  std::vector<std::unique_ptr<kernels::ExpertsWeight>> layers;
  for (int l = 0; l < o.layers; ++l) {
    auto made = kernels::cpu::CreateMoe(spec, backend);
    HB_CHECK(made.has_value(), made ? "" : made.error().ToString());
    platform::ParallelFor(o.experts * 3, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto part = static_cast<ExpertPart>(i % 3);
        const tensor::QuantizedMatrix m{.format = mode.format, .rows = part == ExpertPart::kDown ? o.d : o.f, .cols = part == ExpertPart::kDown ? o.f : o.d,
                                        .elements = elements.data(), .block_scales = scales.data(), .outer = &outer};
        HB_CHECK(kernels::cpu::PackMoe(**made, i / 3, part, m).has_value());
      }
    });
    layers.push_back(std::move(*made));
  }
  return layers;
}

struct Call {
  std::vector<int32_t> ids;
  int64_t touched = 0;
};

// even: every token picks its k experts at random; skewed: half of the slots go to an eighth of the experts; one: all tokens pick the same k.
Call Route(const Options& o, const std::string& routing, int64_t tokens, std::mt19937& rng) {
  Call call;
  std::vector<char> used(static_cast<size_t>(o.experts));
  std::vector<int32_t> first;
  for (int64_t t = 0; t < tokens; ++t) {
    std::vector<int32_t> picked;
    while (static_cast<int64_t>(picked.size()) < o.top_k) {
      auto e = static_cast<int32_t>(rng() % static_cast<uint64_t>(o.experts));
      if (routing == "skewed" && rng() % 2 == 0) e %= std::max<int32_t>(1, static_cast<int32_t>(o.experts / 8));
      if (std::find(picked.begin(), picked.end(), e) == picked.end()) picked.push_back(e);
    }
    if (routing == "one") { if (t == 0) first = picked; picked = first; }
    for (int32_t e : picked) { call.ids.push_back(e); call.touched += !used[e]; used[e] = 1; }
  }
  return call;
}

struct Line {
  double seconds = 0, best = 0, bytes = 0, operations = 0;
};

Line Measure(const Options& o, const Mode& mode, std::vector<std::unique_ptr<kernels::ExpertsWeight>>& layers, const std::string& routing, int64_t tokens, bool prompt) {
  std::mt19937 rng(7);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<size_t>(tokens * o.d)), out(x.size()), weights(static_cast<size_t>(tokens * o.top_k), 0.125f);
  std::vector<uint16_t> x16(x.size());
  for (size_t i = 0; i < x.size(); ++i) { x[i] = normal(rng); x16[i] = numerics::FloatToBf16(x[i]); }
  std::vector<double> times;
  double touched = 0;
  const double end = Now() + o.seconds;
  for (size_t i = 0; i < 5 || Now() < end; ++i) {
    const Call call = Route(o, routing, tokens, rng);
    const auto& layer = *layers[i % layers.size()];
    kernels::MoeOp op{.prompt_rows = prompt ? tokens : 0, .experts = &layer, .top_k = o.top_k, .ids = call.ids, .weights = weights};
    op.x = tensor::Matrix(mode.x == DType::kF32 ? static_cast<const void*>(x.data()) : x16.data(), mode.x, tokens, o.d);
    op.out = tensor::MutableMatrix(out.data(), DType::kF32, tokens, o.d);
    const double begin = Now();
    kernels::cpu::RunMoe(op);
    if (i == 0) continue;  // warm up the workspace
    times.push_back(Now() - begin);
    touched += static_cast<double>(call.touched);
  }
  touched /= static_cast<double>(times.size());
  std::nth_element(times.begin(), times.begin() + static_cast<int64_t>(times.size() / 2), times.end());
  return {times[times.size() / 2], *std::min_element(times.begin(), times.end()), touched * static_cast<double>(layers[0]->bytes()) / static_cast<double>(o.experts),
          6.0 * static_cast<double>(o.d * o.f * o.top_k * tokens)};
}

void RunMode(const Options& o, const Mode& mode) {
  auto layers = MakeLayers(o, mode);
  for (const auto& routing : o.routings) {
    for (const bool prompt : {false, true}) {
      if (o.row_class != "both" && (o.row_class == "prompt") != prompt) continue;
      for (const int64_t tokens : o.tokens) {
        const auto before = kernels::cpu::MeasureLimits(0.2);
        const Line line = Measure(o, mode, layers, routing, tokens, prompt);
        const auto after = kernels::cpu::MeasureLimits(0.2);
        const double read = std::max(before.read_gb_per_second, after.read_gb_per_second);
        const double bf16 = std::max(before.bf16_gflops, after.bf16_gflops), int8 = std::max(before.int8_gops, after.int8_gops);
        const double peak = mode.form == ActivationForm::kInt8Groups ? int8 : mode.x == DType::kF32 ? std::max(before.f32_gflops, after.f32_gflops) : bf16;
        const double limit = std::max(line.bytes / read, line.operations / peak) * 1e-9;
        std::printf("%-13s %-7s %-9s %4ld tokens %10.1f us  %7.1f MB %6.1f GB/s %5.1f%% of %4.1f  %8.1f Gop/s %5.1f%% of %6.1f  share of limit %5.1f%% (best call %5.1f%%)\n", mode.name, routing.c_str(),
                    prompt ? "prompt" : "generated", static_cast<long>(tokens), line.seconds * 1e6, line.bytes * 1e-6, line.bytes / line.seconds * 1e-9,
                    line.bytes / line.seconds * 1e-7 / read, read, line.operations / line.seconds * 1e-9, line.operations / line.seconds * 1e-7 / peak, peak, limit / line.seconds * 100, limit / line.best * 100);
        std::fflush(stdout);
      }
    }
  }
}

}  // namespace
}  // namespace halfbyte

int main(int argc, char** argv) {
  using namespace halfbyte;
  const Options o = Parse(argc, argv);
  if (o.threads > 0) platform::SetThreads(o.threads);
  const auto limits = kernels::cpu::MeasureLimits(1.0);
  std::printf("%d threads: read %.1f GB/s, F32 %.0f, BF16 %.0f GFLOP/s, INT8 %.0f Gop/s\n", platform::Threads(), limits.read_gb_per_second, limits.f32_gflops,
              limits.bf16_gflops, limits.int8_gops);
  for (const auto& mode : kModes) {
    if (o.modes.empty() || std::find(o.modes.begin(), o.modes.end(), mode.name) != o.modes.end()) RunMode(o, mode);
  }
}
