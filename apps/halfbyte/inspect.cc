// halfbyte inspect: the load report from headers alone, or from a config.json alone.
#include <memory>

#include "model_options.h"
#include "model/weights.h"
#include "kernels/create_backend.h"
#include "quant/plan_report.h"

namespace halfbyte::app {
namespace {

struct Options {
  ModelOptions model;
  std::string config;
};

base::Status Inspect(const Options& options, Context& context) {
  const model::LoadSettings settings = options.model.Settings();
  HB_ASSIGN_OR_RETURN(auto backend, kernels::CreateBackend(settings.device, {settings.threads, settings.kernels}));
  model::Prepared p;
  if (options.config.empty()) {
    HB_ASSIGN_OR_RETURN(const std::filesystem::path folder, options.model.Folder());
    HB_ASSIGN_OR_RETURN(p, model::Prepare(folder, settings, backend->name()));
  } else {
    HB_ASSIGN_OR_RETURN(base::Json config, checkpoint::ReadConfigFile(options.config));
    HB_ASSIGN_OR_RETURN(p, model::PrepareFromConfig(config, base::Json(), settings, backend->name()));
  }
  const auto arithmetic = settings.arithmetic.value_or(backend->name() == "reference" ? model::Arithmetic::kExact : model::Arithmetic::kRounded);
  const int64_t packed = model::Weights::PackedBytes(*backend, p.spec, p.plan, arithmetic);
  int64_t parameters = 0;
  for (const quant::PlannedMatrix& m : p.plan.matrices) parameters += m.source.rows * m.source.cols;
  for (const quant::SourceVector& v : p.plan.vectors) parameters += v.size;
  if (p.plan.tied) parameters -= p.spec.vocab * p.spec.hidden;
  if (context.json) {
    base::Json out = base::Json::MakeObject();
    out.Set("family", p.spec.family);
    out.Set("parameters", parameters);
    const base::Json report = quant::ReportJson(p.plan);
    for (const auto& [key, value] : report.as_object()) out.Set(key, value);
    out.Set("peak_bytes", model::PeakBytes(p, packed));
    context.out.Json(out, 1);
    return {};
  }
  context.out.Format("%s, %.2f M parameters, %zu layers%s%s\n", p.spec.family.c_str(), static_cast<double>(parameters) / 1e6, p.spec.layers.size(),
              p.producer.empty() ? "" : ", written by ", p.producer.c_str());
  context.out.Text(quant::ReportText(p.plan));
  context.out.Format("  memory: %.1f MB packed for %s, at most %.1f MB while loading\n", static_cast<double>(packed) / 1e6, std::string(backend->name()).c_str(),
              static_cast<double>(model::PeakBytes(p, packed)) / 1e6);
  return {};
}

}  // namespace

void RegisterInspect(CLI::App& program, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("inspect", "what loading would do to every tensor, from headers or from a config.json alone");
  options->model.AddTo(*command);
  command->add_option("--config", options->config, "a config.json instead of a model: every tensor is taken to be BF16");
  command->callback([options, &context] {
    options->model.CheckUsage();
    context.command = [options, &context] { return Inspect(*options, context); };
  });
}

}  // namespace halfbyte::app
