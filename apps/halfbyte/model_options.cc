#include "model_options.h"

#include <cstdio>
#include <sstream>
#include <unistd.h>

#include "base/log.h"
#include "kernels/create_backend.h"
#include "options.h"
#include "checkpoint/model_folder.h"
#include "engine/model_runner.h"
#include "quant/plan_report.h"

namespace halfbyte::app {

namespace {

// "" where the word is one that --device knows; whether the machine has the device is another matter.
std::string CheckDevice(const std::string& device) {
  const bool numbered = device.starts_with("cuda:") && device.size() > 5 && device.find_first_not_of("0123456789", 5) == device.npos;
  if (numbered || device == "auto" || device == "cpu" || device == "cuda" || device == "reference") return "";
  return "\"" + device + "\" is none of auto, cpu, cuda, cuda:N, reference";
}

}  // namespace

std::string CheckMode(const std::string& mode) {
  std::istringstream names(quant::ModeNames());
  for (std::string name; names >> name;)
    if (name == mode || name == mode + ",") return "";
  return "\"" + mode + "\" is none of " + quant::ModeNames();
}

void ModelOptions::AddTo(CLI::App& c) {
  c.add_option("--model", model, "a Hugging Face folder, org/name from the local cache, or demo")->capture_default_str();
  c.add_option("--quantization", quantization, quant::ModeNames())->check(CheckMode)->capture_default_str();
  c.add_option("--device", device, "auto, cpu, cuda, cuda:N, reference")->check(CheckDevice)->capture_default_str();
  AddThreads(c, threads);
  c.add_option("--ignore-layers", ignore_layers, "leave the experts of these modules as they are (comma separated paths)")->delimiter(',');
  c.add_option("--dense-quantization", dense_quantization, "none, fp8 or nvfp4: dense linear layers and the head")
      ->check(CLI::IsMember({"none", "fp8", "nvfp4"}))->capture_default_str();
  c.add_option("--kv-cache-dtype", kv_cache_dtype, "auto, bf16 or fp8_e4m3")->check(CLI::IsMember({"auto", "bf16", "fp8_e4m3"}))->capture_default_str();
  AddKernels(c, kernels, "op=name: force a kernel, e.g. moe_gemm=avx2");
  c.add_option("--load-format", load_format, "auto, or dummy: random weights from a config.json alone")->check(CLI::IsMember({"auto", "dummy"}))->capture_default_str();
  auto* e = c.add_flag("--exact", exact, "FP32 arithmetic throughout");
  auto* r = c.add_flag("--rounded", rounded, "activations in BF16 (the default but on reference)");
  e->excludes(r);
}

void ModelOptions::CheckUsage() const {
  if (kernels.empty()) return;
  // A backend costs next to nothing to make, and it alone knows its kernels. A device that this machine lacks is no wrong usage; loading says so.
  auto backend = kernels::CreateBackend(device, {threads, kernels});
  if (!backend && backend.error().code() == base::ErrorCode::kInvalidArgument) throw WrongUsage("--kernel: " + backend.error().ToString());
}

model::LoadSettings ModelOptions::Settings() const {
  model::LoadSettings s;
  s.quantization = quantization;
  s.device = device;
  s.threads = threads;
  s.ignore_layers = ignore_layers;
  s.dense = dense_quantization == "fp8" ? quant::DenseQuantization::kFp8 : dense_quantization == "nvfp4" ? quant::DenseQuantization::kNvfp4 : quant::DenseQuantization::kNone;
  if (exact) s.arithmetic = model::Arithmetic::kExact;
  if (rounded) s.arithmetic = model::Arithmetic::kRounded;
  s.dummy = load_format == "dummy";
  s.kernels = kernels;
  return s;
}

base::Result<std::filesystem::path> ModelOptions::Folder() const { return checkpoint::ResolveModelFolder(model); }

std::optional<tensor::DType> KvDtype(const std::string& option) {
  if (option == "bf16") return tensor::DType::kBF16;
  if (option == "fp8_e4m3") return tensor::DType::kF8E4M3;
  return std::nullopt;
}

base::Status CheckCache(const model::Admission& admission, const engine::StateOptions& state, const std::string& remedy) {
  auto status = engine::CheckState(admission.spec, admission.arithmetic, state, admission.memory_left);
  if (status || status.error().code() != base::ErrorCode::kOutOfMemory) return status;
  return base::Fail(std::move(status).error().Hint(remedy));
}

base::Status CheckTokens(const model::Admission& admission, const std::vector<int32_t>& ids, const std::string& where) {
  for (const int32_t id : ids)
    if (id < 0 || id >= admission.spec.vocab)
      return base::Fail(base::ErrorCode::kInvalidArgument, where, " holds token ", id, ", the model's vocabulary is [0, ", admission.spec.vocab, ")");
  return {};
}

quant::ProgressFunction ProgressBar(std::string what) {
  const bool terminal = isatty(STDERR_FILENO);
  double last = 0;
  return [terminal, last, what = std::move(what)](const quant::LoadProgress& p) mutable {
    const bool done = p.bytes_read >= p.bytes_total;
    if (p.seconds < 2 || (!terminal && !done && p.seconds - last < 5)) return;  // nobody needs a bar for two seconds
    last = p.seconds;
    const double left = p.bytes_read ? p.seconds * static_cast<double>(p.bytes_total - p.bytes_read) / static_cast<double>(p.bytes_read) : 0;
    std::fprintf(stderr, "%s%s: %.1f of %.1f GB, %lld of %lld experts, %.2f GB/s, %.0f s left%s", terminal ? "\r\033[K" : "", what.c_str(), static_cast<double>(p.bytes_read) / 1e9,
                 static_cast<double>(p.bytes_total) / 1e9, static_cast<long long>(p.experts_done), static_cast<long long>(p.experts_total),
                 static_cast<double>(p.bytes_read) / 1e9 / p.seconds, left, terminal && !done ? "" : "\n");
  };
}

base::Result<model::LoadedModel> LoadWithReport(const ModelOptions& options, const Context& context, Admit admit) {
  model::LoadSettings settings = options.Settings();
  settings.admit = std::move(admit);
  HB_ASSIGN_OR_RETURN(const std::filesystem::path folder, options.Folder());
  if (!context.quiet) {
    settings.planned = [&](const quant::QuantPlan& plan) { std::fputs(quant::ReportText(plan).c_str(), stderr); };
    settings.progress = ProgressBar("loading");
  } else {
    settings.planned = [](const quant::QuantPlan& plan) { for (const std::string& w : plan.warnings) base::LogWarning(w); };
  }
  HB_ASSIGN_OR_RETURN(model::LoadedModel loaded, model::LoadModel(folder, settings));
  if (!context.quiet) {
    const quant::LoadStats& s = loaded.stats;
    std::fprintf(stderr, "loaded %.2f M parameters (%.2f M converted) in %.2f s: %.3f G parameters/s, %.2f GB/s read, %.1f MB packed",
                 static_cast<double>(s.parameters) / 1e6, static_cast<double>(s.parameters_converted) / 1e6, s.seconds, static_cast<double>(s.parameters) / 1e9 / s.seconds,
                 static_cast<double>(s.bytes_read) / 1e9 / s.seconds, static_cast<double>(loaded.packed_bytes) / 1e6);
    if (s.changed_by_rounding) std::fprintf(stderr, "; %lld FP16 or FP32 values are not exact in BF16", static_cast<long long>(s.changed_by_rounding));
    std::string kernels;
    for (const auto& [op, name] : loaded.model->backend().Kernels()) kernels += " " + op + "=" + name;
    std::fprintf(stderr, "\nkernels (%s):%s\n", std::string(loaded.model->backend().name()).c_str(), kernels.c_str());
  }
  return loaded;
}

}  // namespace halfbyte::app
