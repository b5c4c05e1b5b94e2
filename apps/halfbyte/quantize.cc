// halfbyte quantize: writes an NVFP4 checkpoint that vLLM, SGLang, TensorRT-LLM and this program read.
#include <charconv>
#include <cstdio>
#include <memory>

#include "base/log.h"
#include "calibrate.h"
#include "checkpoint/model_folder.h"
#include "commands.h"
#include "kernels/api/weight_quantizer.h"
#include "model/load.h"
#include "model_options.h"
#include "options.h"
#include "platform/memory.h"
#include "quant/export.h"

namespace halfbyte::app {
namespace {

using base::ErrorCode;

struct Options {
  std::string model = "demo", out;
  std::string contract = "modelopt", format = "modelopt";
  std::string scale_search = "none", ws2 = "cuda", activations;
  std::vector<std::string> include, exclude, ignore_layers;
  std::string calibrate;
  uint64_t max_shard_bytes = 5'000'000'000;
  int threads = 0;
  std::vector<std::pair<std::string, std::string>> kernels;
};

// "5GB", "500MB", "4GiB", "123456": decimal units as Hugging Face counts them, binary ones with an i.
base::Result<uint64_t> ParseBytes(const std::string& text) {
  double value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(end, text.data() + text.size());
  static constexpr std::pair<std::string_view, double> kUnits[] = {{"", 1},      {"B", 1},        {"KB", 1e3},       {"MB", 1e6},           {"GB", 1e9},
                                                                   {"TB", 1e12}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}};
  for (const auto& [name, factor] : kUnits)
    if (ec == std::errc() && unit == name && value * factor >= 1 && value * factor < 9e18) return static_cast<uint64_t>(value * factor);
  return base::Fail(ErrorCode::kInvalidArgument, "\"", text, "\": a size like 5GB, 500MB or 4GiB is wanted");
}

numerics::WeightContract ContractOf(const Options& o) {
  if (o.contract == "online") return numerics::WeightContract::Online();
  const numerics::Flavour flavour = o.ws2 == "cpu" ? numerics::Flavour::kCpu : numerics::Flavour::kCuda;
  if (o.scale_search == "4over6") return numerics::WeightContract::ModeloptFourOverSix(flavour);
  if (o.scale_search == "sweep") return numerics::WeightContract::ModeloptSweep(flavour);
  return numerics::WeightContract::Modelopt(flavour);
}

base::Result<quant::ExportOptions> ExportOptionsOf(const Options& o) {
  quant::ExportOptions e;
  e.contract = ContractOf(o);
  e.format = o.format == "modelopt" ? quant::ExportFormat::kModelopt : quant::ExportFormat::kCompressedTensors;
  if (!o.activations.empty()) e.weight_only = o.activations == "w4a16";
  else if (!o.calibrate.empty()) e.weight_only = false;
  e.dense = !o.include.empty();
  // A loader in a per-token or 16-bit mode converts experts that the source's list names, one in modelopt_fp4 leaves them (reference-behaviour 4.1):
  // each contract does as its loader.
  e.obey_source_list = o.contract == "modelopt";
  HB_ASSIGN_OR_RETURN(e.excluded, quant::LayerSelection::Make(o.exclude, "--exclude", quant::PatternSyntax::kPatterns));
  HB_ASSIGN_OR_RETURN(e.ignored, quant::LayerSelection::Make(o.ignore_layers, "--ignore-layers", quant::PatternSyntax::kPaths));
  e.version = HALFBYTE_VERSION;
  e.settings = {{"contract", o.contract}};
  if (o.contract == "modelopt") { e.settings.emplace_back("scale_search", o.scale_search); e.settings.emplace_back("ws2", o.ws2); }
  return e;
}

void PrintJson(Output& to, const quant::ExportStats& s) {
  base::Json out = base::Json::MakeObject(), warnings = base::Json::MakeArray();
  for (const std::string& w : s.warnings) warnings.Push(w);
  out.Set("tensors", s.tensors);
  out.Set("converted", s.converted);
  out.Set("reused", s.reused);
  out.Set("kept", s.kept);
  out.Set("bytes_read", s.bytes_read);
  out.Set("bytes_written", s.bytes_written);
  out.Set("seconds", s.seconds);
  out.Set("parameters_per_second", static_cast<double>(s.parameters_converted) / s.seconds);
  out.Set("peak_rss_bytes", static_cast<int64_t>(platform::PeakResidentBytes()));
  out.Set("warnings", std::move(warnings));
  to.Json(out, 1);
}

void PrintText(Output& to, const Options& o, const quant::ExportStats& s) {
  to.Format("%s: %lld tensors in %d file%s, %lld matrices converted, %lld NVFP4 already, %lld tensors as they were\n", o.out.c_str(), static_cast<long long>(s.tensors), s.shards,
              s.shards == 1 ? "" : "s", static_cast<long long>(s.converted), static_cast<long long>(s.reused), static_cast<long long>(s.kept));
  to.Format("%.1f MB read, %.1f MB written in %.2f s: %.3f G parameters/s converted, %.1f MB of memory at most\n", static_cast<double>(s.bytes_read) / 1e6,
              static_cast<double>(s.bytes_written) / 1e6, s.seconds, static_cast<double>(s.parameters_converted) / 1e9 / s.seconds,
              static_cast<double>(platform::PeakResidentBytes()) / 1e6);
}

base::Status Quantize(const Options& options, Context& context) {
  HB_ASSIGN_OR_RETURN(quant::ExportOptions export_options, ExportOptionsOf(options));
  quant::ExportRun run;
  run.out = options.out;
  run.workers = options.threads;
  HB_ASSIGN_OR_RETURN(run.quantizer, kernels::ChooseWeightQuantizer(options.kernels));
  run.writer.max_shard_bytes = options.max_shard_bytes;
  if (!context.quiet) run.progress = ProgressBar("quantizing");
  HB_ASSIGN_OR_RETURN(const std::filesystem::path folder, checkpoint::ResolveModelFolder(options.model));
  std::vector<std::string> remarks;
  if (!options.calibrate.empty()) {
    HB_ASSIGN_OR_RETURN(Calibration measured, Calibrate(folder, options.calibrate, options.threads, options.ws2 == "cpu" ? numerics::Flavour::kCpu : numerics::Flavour::kCuda, context));
    export_options.input_scales = std::move(measured.scales);
    export_options.settings.emplace_back("calibration_tokens", std::to_string(measured.tokens));
    remarks = std::move(measured.remarks);
  }
  HB_ASSIGN_OR_RETURN(model::OpenedModel m, model::OpenModel(folder));
  HB_ASSIGN_OR_RETURN(const quant::ExportPlan plan, quant::MakeExportPlan(m.files, m.names, std::move(m.sources), m.source_options, m.metadata, export_options));
  if (!context.quiet) std::fputs(quant::ExportReport(plan).c_str(), stderr);
  HB_ASSIGN_OR_RETURN(quant::ExportStats stats, quant::RunExport(m.files, plan, run));
  stats.warnings.insert(stats.warnings.end(), remarks.begin(), remarks.end());
  // The report has told the plan's warnings; what turned up later follows, and all of them where there was no report.
  for (size_t i = context.quiet ? 0 : plan.load.warnings.size(); i < stats.warnings.size(); ++i) base::LogWarning(stats.warnings[i]);
  if (context.json) PrintJson(context.out, stats);
  else PrintText(context.out, options, stats);
  return {};
}

}  // namespace

void RegisterQuantize(CLI::App& program, Context& context) {
  auto o = std::make_shared<Options>();
  CLI::App* c = program.add_subcommand("quantize", "write an NVFP4 checkpoint that vLLM, SGLang and TensorRT-LLM read");
  c->add_option("--model", o->model, "a Hugging Face folder, org/name from the local cache, or demo")->capture_default_str();
  c->add_option("--out", o->out, "the new folder; it appears when it is complete")->required()->check(CheckNotEmpty);
  c->add_option("--contract", o->contract, "modelopt: the bytes ModelOpt writes; online: the bytes the loader makes")->check(CLI::IsMember({"modelopt", "online"}))->capture_default_str();
  c->add_option("--format", o->format, "modelopt or compressed-tensors")->check(CLI::IsMember({"modelopt", "compressed-tensors"}))->capture_default_str();
  auto* search = c->add_option("--scale-search", o->scale_search, "block scales: none, 4over6 (two candidates) or sweep (all)")->check(CLI::IsMember({"none", "4over6", "sweep"}))->capture_default_str();
  auto* ws2 = c->add_option("--ws2", o->ws2, "weight_scale_2 as PyTorch divides on cuda or cpu")->check(CLI::IsMember({"cuda", "cpu"}))->capture_default_str();
  c->add_option("--activations", o->activations, "w4a4 (with input scales) or w4a16 (without); default: w4a4, or as an NVFP4 source has it")->check(CLI::IsMember({"w4a4", "w4a16"}));
  c->add_option("--calibrate", o->calibrate, "measure activation scales with these texts ({\"text\"} a line) instead of writing 1.0");
  c->add_option("--include", o->include, "dense: dense linear layers too")->check(CLI::IsMember({"dense"}));
  c->add_option("--exclude", o->exclude, "leave these modules as they are: path, glob or re:regex; may be repeated");
  c->add_option("--ignore-layers", o->ignore_layers, "leave the experts of these modules as they are (comma separated paths)")->delimiter(',');
  c->add_option_function<std::string>("--max-shard-size", [o](const std::string& text) {
    auto bytes = ParseBytes(text);
    if (!bytes) throw CLI::ValidationError("--max-shard-size", bytes.error().ToString());
    o->max_shard_bytes = *bytes;
  }, "largest file of tensors")->default_str("5GB");
  AddThreads(*c, o->threads);
  AddKernels(*c, o->kernels, "quantize=name: force the variant of the converter");
  c->callback([o, search, ws2, &context] {
    if (o->contract == "online" && search->count() + ws2->count() > 0)
      throw WrongUsage("--contract online is what the loader makes; --scale-search and --ws2 belong to --contract modelopt");
    if (!o->calibrate.empty() && o->activations == "w4a16") throw WrongUsage("--calibrate measures activation scales, --activations w4a16 writes none");
    for (const auto& [op, name] : o->kernels) if (op != "quantize") throw WrongUsage(base::StrCat("--kernel ", op, "=", name, ": only quantize has kernels to choose from here"));
    if (auto chosen = kernels::ChooseWeightQuantizer(o->kernels); !chosen) throw WrongUsage("--kernel: " + chosen.error().ToString());
    context.command = [o, &context] { return Quantize(*o, context); };
  });
}

}  // namespace halfbyte::app
