#include "quant/export_plan.h"

#include <algorithm>
#include <utility>

#include "quant/fp8_respelling.h"
#include "quant/kept_modules.h"
#include "quant/plan_report.h"

namespace halfbyte::quant {
namespace {

using tensor::DType;
using tensor::Shape;

// NVFP4 with AWQ factors is copied as it is, factors and all.
bool IsWritten(const PlannedMatrix& m) { return m.target.is_nvfp4() && !m.source.pre_scale; }

// The stem under which the files hold a matrix: its own, or that of a stacked tensor.
TensorId StemOf(const checkpoint::NameMap& names, const PlannedMatrix& m) {
  const checkpoint::NameMatch match = names.Match(m.source.weight->name);
  const auto* matched = std::get_if<checkpoint::MatchedName>(&match);
  HB_CHECK(matched, m.source.weight->name);
  return matched->id;
}

// "a.experts.3.gate_proj" of a.experts.gate_up_proj; an unstacked matrix keeps its module.
std::string ModuleOf(const SourceMatrix& m) {
  std::string stem(checkpoint::SplitTensorName(m.weight->name).stem);
  if (m.layout == StackedLayout::kPerExpert) return stem;
  const char* last = m.id.role == TensorRole::kExpertGate ? "gate_proj" : m.id.role == TensorRole::kExpertUp ? "up_proj" : "down_proj";
  return base::StrCat(stem.substr(0, stem.rfind('.') + 1), m.id.expert, ".", last);
}

base::Result<QuantPlan> LoadPlan(SourceMap sources, const checkpoint::QuantMetadata& metadata, const ExportOptions& options) {
  PlanOptions o;
  o.mode = QuantMode::kW4A16;
  o.contract = options.contract;
  o.dense = options.dense ? DenseQuantization::kNvfp4 : DenseQuantization::kNone;
  o.convert_head = false;
  o.ignored = options.ignored;
  o.excluded = options.excluded;
  o.obey_source_list = options.obey_source_list;
  HB_ASSIGN_OR_RETURN(o.source_ignored, LayerSelection::Make(metadata.excludes, metadata.excludes_origin, PatternSyntax::kPatterns));
  HB_ASSIGN_OR_RETURN(QuantPlan plan, MakePlan(std::move(sources), o));
  plan.warnings.insert(plan.warnings.begin(), metadata.warnings.begin(), metadata.warnings.end());
  return plan;
}

// Nothing was left to do: the two ways to get there.
base::Status CheckConvertsSomething(const QuantPlan& plan) {
  int64_t experts = 0;
  for (const PlannedMatrix& m : plan.matrices) {
    if (IsWritten(m) || m.source.format.is_nvfp4()) return {};
    experts += checkpoint::IsExpertRole(m.source.id.role);
  }
  if (experts) return base::Fail(base::ErrorCode::kInvalidArgument, "nothing to convert: all ", experts, " expert matrices are excluded");
  return base::Fail(base::Error(base::ErrorCode::kInvalidArgument, "nothing to convert: this model has no experts").Hint("--include dense converts its dense layers"));
}

// What is not written as NVFP4 is copied: as it is in the file, and by no unit.
void KeepTheRest(QuantPlan& plan) {
  plan.bytes_after = 0;
  for (PlannedMatrix& m : plan.matrices) {
    if (!IsWritten(m)) { m.action = Action::kKeep; m.target = m.source.format; }
    plan.bytes_after += m.target.Bytes(m.source.rows, m.source.cols);
  }
  for (PlanUnit& unit : plan.units)
    std::erase_if(unit.matrices, [&](int32_t i) { return !IsWritten(plan.matrices[static_cast<size_t>(i)]); });
  std::erase_if(plan.units, [](const PlanUnit& unit) { return unit.matrices.empty(); });
}

// Parts that go when their matrix is written anew; biases and KV scales of the same stem stay.
bool IsReplacedPart(TensorPart part) { return part != TensorPart::kBias && part != TensorPart::kKScale && part != TensorPart::kVScale; }

bool IsWeightPart(TensorPart part) { return part == TensorPart::kWeight || part == TensorPart::kWeightPacked || part == TensorPart::kBlocks; }

void Declare(const ExportedMatrix& e, const SourceMatrix& m, ExportPlan& plan) {
  const Nvfp4Dialect& d = DialectOf(plan.format);
  const Shape scalar = d.rank_one ? Shape({1}) : Shape(std::vector<int64_t>{});
  auto declare = [&](std::string_view ending, DType dtype, Shape shape) { plan.tensors.push_back({e.module + std::string(ending), dtype, std::move(shape)}); };
  if (!plan.config.weight_only) declare(d.input, DType::kF32, scalar);
  declare(d.weight, DType::kU8, Shape({m.rows, m.cols / 2}));
  declare(d.scale, DType::kF8E4M3, Shape({m.rows, m.cols / 16}));
  declare(d.outer, DType::kF32, scalar);
}

// NVFP4 that is copied because no load reads or runs it (MTP layers, matrices with AWQ factors) keeps its names, and those must be the dialect's.
base::Status CheckCopiedNvfp4(const ExportPlan& plan) {
  for (const TensorEntry* entry : plan.copied) {
    const auto part = checkpoint::SplitTensorName(entry->name).part;
    if (part == TensorPart::kWeightScale2 || part == TensorPart::kPreQuantScale)
      return base::Fail(base::Error(base::ErrorCode::kUnsupported, base::StrCat("tensor ", entry->name, ": NVFP4 in ModelOpt's form that is only carried over cannot be described in compressed-tensors' words"))
                            .Hint("use --format modelopt"));
  }
  return {};
}

}  // namespace

const Nvfp4Dialect& DialectOf(ExportFormat format) {
  static constexpr Nvfp4Dialect kModelopt{".weight", ".weight_scale", ".weight_scale_2", ".input_scale"};
  static constexpr Nvfp4Dialect kCompressed{".weight_packed", ".weight_scale", ".weight_global_scale", ".input_global_scale", true, true};
  return format == ExportFormat::kModelopt ? kModelopt : kCompressed;
}

base::Result<ExportPlan> MakeExportPlan(const checkpoint::Checkpoint& files, const checkpoint::NameMap& names, SourceMap sources, const SourceOptions& source_options,
                                        const checkpoint::QuantMetadata& metadata, const ExportOptions& options) {
  ExportPlan plan;
  // A tied head has no tensor of its own.
  if (sources.tied) std::erase_if(sources.matrices, [](const SourceMatrix& m) { return m.id.role == TensorRole::kLmHead; });
  HB_ASSIGN_OR_RETURN(plan.load, LoadPlan(std::move(sources), metadata, options));
  plan.load.warnings.insert(plan.load.warnings.end(), files.warnings().begin(), files.warnings().end());
  HB_RETURN_IF_ERROR(CheckConvertsSomething(plan.load));
  KeepTheRest(plan.load);
  plan.carried = std::exchange(plan.load.skipped, {});
  plan.load.discarded = 0;
  plan.format = options.format;
  plan.input_scales = options.input_scales;

  std::map<TensorId, std::vector<TensorId>> by_stem;  // stem in the files -> written matrices
  bool reuses = false, reuses_inputs = false;
  for (size_t i = 0; i < plan.load.matrices.size(); ++i) {
    const PlannedMatrix& m = plan.load.matrices[i];
    if (!IsWritten(m)) continue;
    by_stem[StemOf(names, m)].push_back(m.source.id);
    plan.written[m.source.id] = {static_cast<int32_t>(i), ModuleOf(m.source)};
    reuses |= m.action == Action::kReuse;
    reuses_inputs |= m.action == Action::kReuse && m.source.input_scale != nullptr;
  }
  plan.config.weight_only = options.weight_only.value_or(reuses && !reuses_inputs);
  plan.config.version = options.version;
  plan.config.settings = options.settings;
  plan.config.kv_cache = metadata.kv_cache;

  for (const TensorEntry& entry : files.tensors()) {
    plan.bytes_to_read += static_cast<int64_t>(entry.size);
    const checkpoint::NameMatch match = names.Match(entry.name);
    const auto* matched = std::get_if<checkpoint::MatchedName>(&match);
    auto stem = matched ? by_stem.find(matched->id) : by_stem.end();
    if (stem == by_stem.end() || !IsReplacedPart(matched->part)) {
      plan.copied.push_back(&entry);
      plan.tensors.push_back({entry.name, entry.dtype, entry.shape});
      continue;
    }
    if (!IsWeightPart(matched->part)) continue;
    for (const TensorId& id : stem->second) {
      const ExportedMatrix& e = plan.written.at(id);
      Declare(e, plan.load.matrices[static_cast<size_t>(e.matrix)].source, plan);
      plan.config.quantized.push_back(e.module);
    }
  }
  AddKeptModules(files, plan.copied, source_options, plan.config, plan.load.warnings);
  if (plan.load.tied) plan.config.kept.emplace_back(checkpoint::SplitTensorName(names.ExampleName({TensorRole::kLmHead, -1, -1}, TensorPart::kWeight)).stem);
  if (options.format == ExportFormat::kCompressedTensors) {
    HB_RETURN_IF_ERROR(CheckCopiedNvfp4(plan));
    HB_RETURN_IF_ERROR(RespellKeptFp8(files, plan));
  }
  return plan;
}

std::string ExportReport(const ExportPlan& plan) {
  std::string out = base::StrCat("conversion to ", plan.format == ExportFormat::kModelopt ? "ModelOpt" : "compressed-tensors", " NVFP4, ",
                                 plan.config.weight_only ? "W4A16 (no activation scales)" : "W4A4 (with activation scales)", "\n", GroupLines(plan.load));
  for (const auto& [reason, n] : plan.carried) out += base::StrCat("  copied: ", n, " tensors (", reason, ")\n");
  return out + RemarkLines(plan.load);
}

}  // namespace halfbyte::quant
