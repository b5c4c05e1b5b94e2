// halfbyte bench: prefill and decode speed beside what this machine's memory and arithmetic allow.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>

#include "bench_costs.h"
#include "kernel_bench.h"
#include "kernels/cpu/limits/limits.h"
#include "model/state_pool.h"
#include "model_options.h"
#include "platform/memory.h"
#include "platform/parallel.h"
#include "options.h"

namespace halfbyte::app {
namespace {

using kernels::cpu::MachineLimits;

struct Options {
  ModelOptions model;
  int64_t prompt_tokens = 512, decode_tokens = 128, context = 0, batch = 1, repeat = 3;

  int64_t start() const { return context > 0 ? context : prompt_tokens; }  // of decode
  int64_t longest() const { return std::max(prompt_tokens, start() + decode_tokens); }
};

constexpr int64_t kBlock = 64;

// What the flags ask of the model, before it is loaded.
base::Status Admissible(const Options& o, const model::Admission& admission) {
  const int64_t most = admission.spec.max_positions;
  if (o.longest() > most)
    return base::Fail(base::Error(base::ErrorCode::kInvalidArgument, base::StrCat("a sequence would have ", o.longest(), " tokens, this model takes ", most))
                          .Hint("lower --prompt-tokens, --context or --decode-tokens"));
  const int64_t blocks = (o.longest() + kBlock - 1) / kBlock * o.batch;
  return CheckCache(admission, {.block_tokens = kBlock, .sequences = o.batch, .cache_tokens = blocks * kBlock, .kv_dtype = KvDtype(o.model.kv_cache_dtype)},
                    "lower --batch, --context or --prompt-tokens");
}

// A phase measured some times, each time between two probes of the machine.
struct Sample { double seconds = 0; MachineLimits limits; };
struct Phase {
  std::vector<Sample> samples;
  int dropped = 0;
};

double Seconds(const std::function<base::Status()>& work, base::Status& status) {
  const auto start = std::chrono::steady_clock::now();
  status = work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Shared machines change under one's feet: a repeat whose two probes differ by more than 5 %, or whose INT8 probe is under 70 % of the best
// (both virtual CPUs on one core), says nothing and is done again, at most ten times in all.
base::Result<Phase> Measure(int64_t repeat, const std::function<base::Status()>& prepare, const std::function<base::Status()>& work) {
  constexpr double kProbeSeconds = 0.5, kAgree = 0.05, kWhole = 0.7;
  constexpr int kMaxDropped = 10;
  Phase phase;
  double best_int8 = 0;
  while (static_cast<int64_t>(phase.samples.size()) < repeat) {
    HB_RETURN_IF_ERROR(prepare());
    const MachineLimits before = kernels::cpu::MeasureLimits(kProbeSeconds);
    base::Status status;
    Sample sample;
    sample.seconds = Seconds(work, status);
    HB_RETURN_IF_ERROR(std::move(status));
    const MachineLimits after = kernels::cpu::MeasureLimits(kProbeSeconds);
    sample.limits = kernels::cpu::Higher(before, after);
    best_int8 = std::max(best_int8, sample.limits.int8_gops);
    const bool moved = std::abs(before.read_gb_per_second - after.read_gb_per_second) > kAgree * sample.limits.read_gb_per_second;
    if ((moved || sample.limits.int8_gops < kWhole * best_int8) && phase.dropped < kMaxDropped) { ++phase.dropped; continue; }
    phase.samples.push_back(sample);
  }
  std::sort(phase.samples.begin(), phase.samples.end(), [](const Sample& a, const Sample& b) { return a.seconds < b.seconds; });
  return phase;
}

// Sequences of made-up tokens over a state pool, stepped by hand: bench measures the model, not the scheduler.
class Stepper {
 public:
  static base::Result<Stepper> Make(model::Model& m, int64_t sequences, int64_t tokens, std::optional<tensor::DType> kv) {
    Stepper s(m);
    s.blocks_each_ = (tokens + kBlock - 1) / kBlock;
    const auto dtype = m.arithmetic() == model::Arithmetic::kExact ? tensor::DType::kF32 : kv.value_or(tensor::DType::kBF16);
    HB_ASSIGN_OR_RETURN(s.state_, model::StatePool::Create(m.backend(), model::LayerStates(m.spec(), kBlock, dtype), s.blocks_each_ * sequences, 0));
    s.table_.resize(static_cast<size_t>(s.blocks_each_ * sequences));
    std::iota(s.table_.begin(), s.table_.end(), 0);
    s.kv_bytes_ = tensor::DTypeBits(dtype) / 8.0;
    return s;
  }
  double kv_bytes() const { return kv_bytes_; }

  base::Status Prefill(int64_t tokens) {
    constexpr int64_t kChunk = 512;
    for (int64_t begin = 0; begin < tokens; begin += kChunk) {
      const int64_t n = std::min(kChunk, tokens - begin);
      Fill(n);
      const kernels::SequenceRows rows{0, n, begin, table_.data()};
      const std::vector<int64_t> wanted(begin + n == tokens ? 1 : 0, n - 1);
      HB_RETURN_IF_ERROR(model_->Forward({tokens_, {&rows, 1}, n, wanted}, *state_));
    }
    return {};
  }
  // One generated token for each of `sequences` sequences at `position`.
  base::Status Decode(int64_t sequences, int64_t position) {
    Fill(sequences);
    rows_.clear();
    std::vector<int64_t> wanted(static_cast<size_t>(sequences));
    std::iota(wanted.begin(), wanted.end(), 0);
    for (int64_t i = 0; i < sequences; ++i) rows_.push_back({i, 1, position, table_.data() + i * blocks_each_});
    HB_RETURN_IF_ERROR(model_->Forward({tokens_, rows_, 0, wanted}, *state_));
    return {};
  }

 private:
  explicit Stepper(model::Model& m) : model_(&m) {}
  void Fill(int64_t n) {
    tokens_.resize(static_cast<size_t>(n));
    for (int32_t& t : tokens_) {
      random_ = random_ * 6364136223846793005ull + 1442695040888963407ull;
      t = static_cast<int32_t>((random_ >> 33) % static_cast<uint64_t>(model_->spec().vocab));
    }
  }
  model::Model* model_;
  std::unique_ptr<model::StatePool> state_;
  int64_t blocks_each_ = 0;
  double kv_bytes_ = 2;
  std::vector<int32_t> table_, tokens_;
  std::vector<kernels::SequenceRows> rows_;
  uint64_t random_ = 1;
};

// The peak of the arithmetic that a part's kernels can use: INT8 dot products where both operands of the expert products are integers, else the faster of
// BF16 dot products and FP32 FMA (both are exact enough for BF16 operands; which is faster differs between processors); FP32 alone in the exact form.
double PeakOf(const PartCost& part, quant::QuantMode mode, bool exact, const MachineLimits& l) {
  if (part.part == "experts" && quant::ModeActivations(mode) != kernels::ActivationForm::kPlain) return l.int8_gops * 1e9;
  return (exact ? l.f32_gflops : std::max(l.bf16_gflops, l.f32_gflops)) * 1e9;
}

struct Report {
  double tokens_per_second = 0, limit = 0, share = 0, gb_per_second = 0, gflops = 0, bytes_per_token = 0;
  MachineLimits limits;
  std::vector<PartCost> parts;
};

// tokens: of one sample; costs: of one sample's steps together.
Report Judge(const Phase& phase, double tokens, const std::vector<PartCost>& costs, quant::QuantMode mode, bool exact) {
  const Sample& median = phase.samples[phase.samples.size() / 2];
  Report r;
  r.limits = median.limits;
  r.parts = costs;
  for (PartCost& p : r.parts) p.peak = PeakOf(p, mode, exact, median.limits);
  r.tokens_per_second = tokens / median.seconds;
  r.limit = tokens / LimitSeconds(r.parts, median.limits.read_gb_per_second * 1e9);
  r.share = r.tokens_per_second / r.limit;
  r.gb_per_second = TotalBytes(costs) / median.seconds / 1e9;
  r.gflops = TotalFlop(costs) / median.seconds / 1e9;
  r.bytes_per_token = TotalBytes(costs) / tokens;
  return r;
}

std::vector<PartCost> Sum(std::vector<PartCost> a, const std::vector<PartCost>& b) {
  if (a.empty()) return b;
  for (size_t i = 0; i < a.size(); ++i) { a[i].bytes += b[i].bytes; a[i].flop += b[i].flop; }
  return a;
}

void PrintParts(Output& out, const char* phase, const Report& r, double tokens, int dropped) {
  out.Format("%s: %.1f tokens/s, limit %.1f, %.1f %% of it; %.1f GB/s, %.1f GFLOP/s; machine: read %.1f GB/s, BF16 %.0f GFLOP/s, INT8 %.0f Gop/s, FP32 %.0f GFLOP/s%s\n", phase,
              r.tokens_per_second, r.limit, 100 * r.share, r.gb_per_second, r.gflops, r.limits.read_gb_per_second, r.limits.bf16_gflops, r.limits.int8_gops, r.limits.f32_gflops,
              dropped ? base::StrCat("; ", dropped, " disturbed repeats dropped").c_str() : "");
  for (const PartCost& p : r.parts)
    out.Format("  %-22s %10.3f MB %10.3f MFLOP a token: %6.1f us at least (%s)\n", p.part.c_str(), p.bytes / tokens / 1e6, p.flop / tokens / 1e6,
                std::max(p.bytes / (r.limits.read_gb_per_second * 1e9), p.flop / p.peak) / tokens * 1e6,
                p.bytes / (r.limits.read_gb_per_second * 1e9) > p.flop / p.peak ? "memory" : "arithmetic");
}

base::Json PhaseJson(const Report& r) {
  base::Json j = base::Json::MakeObject(), parts = base::Json::MakeArray();
  j.Set("tokens_per_second", r.tokens_per_second);
  j.Set("gflops", r.gflops);
  j.Set("gb_per_second", r.gb_per_second);
  j.Set("bytes_per_token", r.bytes_per_token);
  j.Set("limit", r.limit);
  j.Set("share_of_limit", r.share);
  for (const PartCost& p : r.parts) {
    base::Json part = base::Json::MakeObject();
    part.Set("part", p.part);
    part.Set("bytes", p.bytes);
    part.Set("flop", p.flop);
    parts.Push(std::move(part));
  }
  j.Set("parts", std::move(parts));
  return j;
}

base::Json LimitsJson(const MachineLimits& l) {
  base::Json j = base::Json::MakeObject();
  j.Set("read_gb_per_second", l.read_gb_per_second);
  j.Set("bf16_gflops", l.bf16_gflops);
  j.Set("int8_gops", l.int8_gops);
  j.Set("f32_gflops", l.f32_gflops);
  return j;
}

base::Status Bench(const Options& o, Context& context) {
  HB_ASSIGN_OR_RETURN(model::LoadedModel loaded, LoadWithReport(o.model, context, [&](const model::Admission& admission) { return Admissible(o, admission); }));
  model::Model& m = *loaded.model;
  const bool exact = m.arithmetic() == model::Arithmetic::kExact;
  const int64_t start = o.start();
  HB_ASSIGN_OR_RETURN(Stepper stepper, Stepper::Make(m, o.batch, o.longest(), KvDtype(o.model.kv_cache_dtype)));
  auto nothing = []() -> base::Status { return {}; };

  HB_RETURN_IF_ERROR(stepper.Prefill(o.prompt_tokens));  // pages and caches warm
  HB_ASSIGN_OR_RETURN(const Phase prefill, Measure(o.repeat, nothing, [&] { return stepper.Prefill(o.prompt_tokens); }));
  const double t = static_cast<double>(o.prompt_tokens);
  const auto prefill_costs = StepCosts(m.spec(), loaded.plan, {o.prompt_tokens, t, t * (t + 1) / 2, 1}, stepper.kv_bytes());
  const Report p = Judge(prefill, t, prefill_costs, loaded.plan.mode, exact);

  auto decode = [&]() -> base::Status {
    for (int64_t i = 0; i < o.decode_tokens; ++i) HB_RETURN_IF_ERROR(stepper.Decode(o.batch, start + i));
    return {};
  };
  HB_ASSIGN_OR_RETURN(const Phase decoded, Measure(o.repeat, nothing, decode));
  std::vector<PartCost> decode_costs;
  for (int64_t i = 0; i < o.decode_tokens; ++i) {
    const double keys = static_cast<double>(o.batch * (start + i + 1));
    decode_costs = Sum(std::move(decode_costs), StepCosts(m.spec(), loaded.plan, {o.batch, keys, keys, o.batch}, stepper.kv_bytes()));
  }
  const double decode_tokens = static_cast<double>(o.decode_tokens * o.batch);
  const Report d = Judge(decoded, decode_tokens, decode_costs, loaded.plan.mode, exact);

  if (!context.json) {
    PrintParts(context.out, "prefill", p, t, prefill.dropped);
    PrintParts(context.out, "decode", d, decode_tokens, decoded.dropped);
    return {};
  }
  base::Json out = base::Json::MakeObject(), kernels = base::Json::MakeArray(), load = base::Json::MakeObject();
  out.Set("model", o.model.model);
  out.Set("quantization", quant::ModeName(loaded.plan.mode));
  out.Set("device", m.backend().name());
  out.Set("threads", platform::Threads());
  base::Json prefill_json = PhaseJson(p), decode_json = PhaseJson(d);
  prefill_json.Set("tokens", o.prompt_tokens);
  decode_json.Set("batch", o.batch);
  decode_json.Set("context", start);
  out.Set("prefill", std::move(prefill_json));
  out.Set("decode", std::move(decode_json));
  out.Set("limits", LimitsJson(kernels::cpu::Higher(p.limits, d.limits)));
  out.Set("dropped", prefill.dropped + decoded.dropped);
  load.Set("seconds", loaded.stats.seconds);
  load.Set("parameters_per_second", static_cast<double>(loaded.stats.parameters) / loaded.stats.seconds);
  load.Set("peak_rss_bytes", platform::PeakResidentBytes());
  out.Set("load", std::move(load));
  for (const auto& [op, name] : m.backend().Kernels()) {
    base::Json k = base::Json::MakeObject();
    k.Set("op", op);
    k.Set("name", name);
    kernels.Push(std::move(k));
  }
  out.Set("kernels", std::move(kernels));
  context.out.Json(out, 1);
  return {};
}

std::vector<int64_t> ParseKernelShape(const std::string& text) {
  const auto shape = ParseTokenIds(text);  // the same strict list of integers
  if (!shape || shape->size() != 4) throw CLI::ValidationError("--kernel-shape", base::StrCat("\"", text, "\": four integers are wanted, as 2048,768,128,8"));
  const auto& s = *shape;
  constexpr int32_t kMost = 1 << 16;
  if (s[0] < 64 || s[0] > kMost || s[0] % 64 || s[1] < 64 || s[1] > kMost || s[1] % 64) throw CLI::ValidationError("--kernel-shape", "the sizes are multiples of 64, 65536 at most");
  if (s[2] < 1 || s[2] > kMost || s[3] < 1 || s[3] > s[2]) throw CLI::ValidationError("--kernel-shape", "a token has at least one expert, and no more than there are");
  return {s.begin(), s.end()};
}

}  // namespace

void RegisterBench(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("bench", "prefill and decode speed beside the machine's limits");
  options->model.AddTo(*command);
  AddInteger(*command, "--prompt-tokens", options->prompt_tokens, 1, 1 << 24, "of the prompt that prefill runs");
  AddInteger(*command, "--decode-tokens", options->decode_tokens, 1, 1 << 24, "decoded in every sequence");
  AddInteger(*command, "--context", options->context, 0, 1 << 24, "tokens in every sequence's cache before decode starts (0: the prompt's)");
  AddInteger(*command, "--batch", options->batch, 1, 4096, "sequences decoded at once");
  AddInteger(*command, "--repeat", options->repeat, 1, 1000, "measurements, of which the median counts");
  auto kernel_options = std::make_shared<KernelBenchOptions>();
  CLI::Option* all = command->add_flag_callback("--kernels", [] {}, "each kernel of this machine alone, beside its limit and checked against reference; loads no model");
  command->add_option("--kernel-filter", kernel_options->filter, "only kernels with this in their name")->needs(all);
  AddReal(*command, "--kernel-seconds", kernel_options->seconds, {0, 60}, "time for each case")->needs(all);
  command->add_flag("--check-only", kernel_options->check_only, "compare results and measure nothing")->needs(all);
  command->add_option_function<std::string>("--kernel-shape", [kernel_options](const std::string& text) { kernel_options->shape = ParseKernelShape(text); },
                                            "hidden size, expert width (multiples of 64), experts, experts a token")->needs(all)->default_str("2048,768,128,8");
  command->callback([options, kernel_options, all, &context] {
    options->model.CheckUsage();
    kernel_options->threads = options->model.threads;
    if (all->count() > 0) context.command = [kernel_options, &context] { return BenchKernels(*kernel_options, context); };
    else context.command = [options, &context] { return Bench(*options, context); };
  });
}

}  // namespace halfbyte::app
