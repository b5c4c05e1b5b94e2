#include "model/load.h"

#include <chrono>
#include <unordered_set>

#include "base/log.h"
#include "checkpoint/quant_metadata.h"
#include "kernels/create_backend.h"
#include "model/family.h"
#include "model/weights.h"
#include "platform/cpu_features.h"
#include "platform/memory.h"
#include "platform/parallel.h"
#include "quant/dummy_load.h"
#include "quant/label_check.h"

namespace halfbyte::model {
namespace {

using base::ErrorCode;

// What loading may take beside the weights and the cache: staging buffers of every worker, activations, the program itself.
constexpr int64_t kWorkingBytes = 256 << 20;

quant::AutoFacts Facts(const ModelSpec& spec, std::string_view backend, const quant::SourceMap& sources) {
  quant::AutoFacts facts;
  facts.device = backend;
  facts.has_experts = spec.has_experts();
  facts.cpu_has_amx = platform::Cpu().HasAmxBf16();
  for (const quant::SourceMatrix& m : sources.matrices)
    if (checkpoint::IsExpertRole(m.id.role) && m.format.is_nvfp4()) { facts.serialized_nvfp4 = true; break; }
  return facts;
}

base::Result<quant::QuantPlan> Plan(const ModelSpec& spec, quant::SourceMap sources, const LoadSettings& settings, std::string_view backend,
                                    const checkpoint::QuantMetadata& metadata) {
  quant::PlanOptions options;
  HB_ASSIGN_OR_RETURN(options.mode, quant::ResolveMode(settings.quantization, Facts(spec, backend, sources)));
  options.mode_is_explicit = settings.quantization != "auto";
  const bool promoted = options.mode == quant::QuantMode::kModeloptFp4 && quant::IsWeightOnly(metadata, sources.matrices);
  if (promoted) options.mode = quant::QuantMode::kW4A16;
  options.contract = numerics::WeightContract::Online();
  options.plain = backend == "reference" ? tensor::DType::kF32 : tensor::DType::kBF16;
  options.dense = settings.dense;
  HB_ASSIGN_OR_RETURN(options.ignored, quant::LayerSelection::Make(settings.ignore_layers, "--ignore-layers", quant::PatternSyntax::kPaths));
  HB_ASSIGN_OR_RETURN(options.source_ignored, quant::LayerSelection::Make(metadata.excludes, metadata.excludes_origin, quant::PatternSyntax::kPatterns));
  HB_ASSIGN_OR_RETURN(quant::QuantPlan plan, quant::MakePlan(std::move(sources), options));
  plan.warnings.insert(plan.warnings.begin(), metadata.warnings.begin(), metadata.warnings.end());
  if (promoted) plan.warnings.push_back("this checkpoint is weight-only (" + (metadata.main.label.empty() ? "input_activations null" : metadata.main.label) + ") and has no activation scales: w4a16 instead of modelopt_fp4");
  return plan;
}

base::Status CheckMemory(const kernels::Backend& backend, const Prepared& p, Arithmetic arithmetic, const LoadSettings& settings) {
  const int64_t weights = Weights::PackedBytes(backend, p.spec, p.plan, arithmetic), need = PeakBytes(p, weights, settings.threads);
  const int64_t have = static_cast<int64_t>(platform::AvailableMemory());
  if (need <= have) return settings.admit ? settings.admit({p.spec, arithmetic, static_cast<uint64_t>(have - weights)}) : base::Status();
  auto gib = [](int64_t b) { return static_cast<double>(b) / (1 << 30); };
  return base::Fail(base::Error(ErrorCode::kOutOfMemory, base::StrCat("this model needs ", gib(need), " GiB (", gib(weights), " GiB of weights), ", gib(have), " GiB are free"))
                        .Hint("a 4-bit mode needs less: --quantization w4a16, --dense-quantization fp8"));
}

base::Result<quant::LoadStats> DummyLoad(const quant::QuantPlan& plan, Weights& weights) {
  const auto start = std::chrono::steady_clock::now();
  HB_RETURN_IF_ERROR(quant::RunDummyLoad(plan, weights, 1));
  quant::LoadStats stats;
  for (const quant::PlannedMatrix& m : plan.matrices) stats.parameters += m.source.rows * m.source.cols;
  stats.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return stats;
}

}  // namespace

base::Result<Prepared> PrepareFromConfig(const base::Json& config, const base::Json& generation_config, const LoadSettings& settings, std::string_view backend_name) {
  Prepared p;
  HB_ASSIGN_OR_RETURN(p.spec, ReadSpec(ConfigReader(config, generation_config)));
  HB_ASSIGN_OR_RETURN(p.plan, Plan(p.spec, quant::DummySources(ExpectedTensors(p.spec), p.spec.tied), settings, backend_name, {}));
  return p;
}

base::Result<OpenedModel> OpenModel(const std::filesystem::path& folder, checkpoint::CheckpointOptions options) {
  HB_ASSIGN_OR_RETURN(checkpoint::Checkpoint files, checkpoint::Checkpoint::Open(folder, std::move(options)));
  std::unordered_set<std::string> present;
  for (const checkpoint::TensorEntry& e : files.tensors()) present.insert(checkpoint::NameMap::StripWrappers(e.name));
  ConfigReader reader(files.config(), files.generation_config(), [&](std::string_view name) { return present.count(std::string(name)) != 0; });
  HB_ASSIGN_OR_RETURN(ModelSpec spec, ReadSpec(reader));
  HB_ASSIGN_OR_RETURN(checkpoint::QuantMetadata metadata, checkpoint::ReadQuantMetadata(files.config(), &files.hf_quant_config()));
  quant::SourceOptions source_options;
  if (const auto block = metadata.Fp8Block()) source_options.fp8_block = {static_cast<int32_t>((*block)[0]), static_cast<int32_t>((*block)[1])};
  // A file that says its head is a tensor of its own and does not have it is incomplete; one that says nothing may be tied.
  if (const base::Json* tie = reader.text().Find("tie_word_embeddings")) source_options.head_may_be_embedding = !tie->is_bool() || tie->as_bool();
  checkpoint::NameMap names(spec.names, static_cast<int64_t>(spec.layers.size()), spec.mtp_layers);
  HB_ASSIGN_OR_RETURN(quant::SourceMap sources, quant::MapSources(files, names, ExpectedTensors(spec), source_options));
  spec.tied = sources.tied;
  HB_ASSIGN_OR_RETURN(std::optional<std::string> disagreement, quant::LabelDisagreement(metadata, sources.matrices));
  if (disagreement) sources.warnings.push_back(std::move(*disagreement));
  return OpenedModel{std::move(files), std::move(spec), std::move(names), std::move(metadata), source_options, std::move(sources)};
}

base::Result<Prepared> Prepare(const std::filesystem::path& folder, const LoadSettings& settings, std::string_view backend_name) {
  if (settings.dummy) {
    HB_ASSIGN_OR_RETURN(auto opened, checkpoint::ModelFolder::Open(folder));
    HB_ASSIGN_OR_RETURN(auto configs, checkpoint::ReadModelConfigs(opened));
    return PrepareFromConfig(configs.config, configs.generation_config, settings, backend_name);
  }
  HB_ASSIGN_OR_RETURN(OpenedModel opened, OpenModel(folder, settings.files));
  Prepared p;
  p.spec = std::move(opened.spec);
  p.producer = opened.metadata.producer;
  HB_ASSIGN_OR_RETURN(p.plan, Plan(p.spec, std::move(opened.sources), settings, backend_name, opened.metadata));
  p.files = std::move(opened.files);
  p.plan.warnings.insert(p.plan.warnings.end(), p.files->warnings().begin(), p.files->warnings().end());
  return p;
}

int64_t PeakBytes(const Prepared& p, int64_t packed_bytes, int workers) {
  int64_t unit = 0;  // sources and results of the largest unit
  for (const quant::PlanUnit& u : p.plan.units) {
    int64_t bytes = 0;
    for (int32_t i : u.matrices) {
      const quant::PlannedMatrix& m = p.plan.matrices[static_cast<size_t>(i)];
      if (m.action == quant::Action::kQuantize) bytes += m.source.format.Bytes(m.source.rows, m.source.cols);
    }
    unit = std::max(unit, bytes);
  }
  return packed_bytes + kWorkingBytes + 2 * unit * (workers > 0 ? workers : platform::AllowedThreads());
}

base::Result<LoadedWeights> LoadWeights(kernels::Backend& backend, const std::filesystem::path& folder, const LoadSettings& settings, Arithmetic arithmetic) {
  HB_ASSIGN_OR_RETURN(Prepared p, Prepare(folder, settings, backend.name()));
  HB_ASSIGN_OR_RETURN(const kernels::WeightQuantizer* quantizer, kernels::ChooseWeightQuantizer(settings.kernels));
  if (settings.planned) settings.planned(p.plan);
  HB_RETURN_IF_ERROR(CheckMemory(backend, p, arithmetic, settings));
  LoadedWeights loaded;
  HB_ASSIGN_OR_RETURN(loaded.weights, Weights::Create(backend, p.spec, p.plan, arithmetic));
  if (settings.dummy) {
    HB_ASSIGN_OR_RETURN(loaded.stats, DummyLoad(p.plan, *loaded.weights));
  } else {
    HB_ASSIGN_OR_RETURN(loaded.stats, quant::RunLoad(*p.files, p.plan, *loaded.weights, {settings.threads, settings.progress, quantizer}));
  }
  HB_RETURN_IF_ERROR(loaded.weights->CheckComplete(p.plan));
  loaded.packed_bytes = Weights::PackedBytes(backend, p.spec, p.plan, arithmetic);
  loaded.plan = std::move(p.plan);
  loaded.spec = std::move(p.spec);
  return loaded;
}

base::Result<LoadedModel> LoadModel(const std::filesystem::path& folder, const LoadSettings& settings) {
  kernels::BackendOptions backend_options{settings.threads, settings.kernels};
  HB_ASSIGN_OR_RETURN(std::unique_ptr<kernels::Backend> backend, kernels::CreateBackend(settings.device, backend_options));
  const Arithmetic arithmetic = settings.arithmetic.value_or(backend->name() == "reference" ? Arithmetic::kExact : Arithmetic::kRounded);
  HB_ASSIGN_OR_RETURN(LoadedWeights w, LoadWeights(*backend, folder, settings, arithmetic));
  LoadedModel loaded;
  loaded.stats = std::move(w.stats);
  loaded.packed_bytes = w.packed_bytes;
  loaded.plan = std::move(w.plan);
  loaded.model = std::make_unique<Model>(std::move(w.spec), std::move(w.weights), std::move(backend), arithmetic);
  return loaded;
}

}  // namespace halfbyte::model
