#include "quant/plan.h"

#include <algorithm>
#include <set>

namespace halfbyte::quant {
namespace {

using tensor::DType;
using tensor::Outer;

bool IsDenseLinear(TensorRole r) {
  switch (r) {
    case TensorRole::kQ: case TensorRole::kK: case TensorRole::kV: case TensorRole::kO:
    case TensorRole::kDenseGate: case TensorRole::kDenseUp: case TensorRole::kDenseDown:
    case TensorRole::kSharedGate: case TensorRole::kSharedUp: case TensorRole::kSharedDown:
    case TensorRole::kLmHead: return true;
    default: return false;
  }
}

void SetDequantize(PlannedMatrix& m, const PlanOptions& options) {
  m.action = Action::kDequantize;
  // With AWQ factors the product is no short float any more: rounded to BF16 only where nothing better is to be had.
  m.target = m.source.pre_scale ? Format::Plain(options.plain) : Format::Bf16();
}

void SetKeep(PlannedMatrix& m, const PlanOptions& options) {
  const Format& f = m.source.format;
  m.target = f;
  m.action = Action::kKeep;
  if (f.is_plain() && f.elem != DType::kBF16 && f.elem != options.plain) {
    m.action = Action::kConvert;
    m.target = Format::Plain(options.plain);
  } else if (f.elem == DType::kF4) {
    // Without a 4-bit mode nobody asked for 4-bit arithmetic: NVFP4 and MXFP4 files are decoded.
    SetDequantize(m, options);
  } else if (f.elem == DType::kF8E5M2 && !checkpoint::IsExpertRole(m.source.id.role) && options.plain != DType::kF32) {
    SetDequantize(m, options);  // no dense kernel reads E5M2; `reference` does
  }
}

base::Status SetNvfp4(PlannedMatrix& m) {
  if (m.source.cols % 16 != 0)
    return base::Fail(base::Error(base::ErrorCode::kUnsupported, base::StrCat(m.source.id.ToString(), m.source.weight ? " (" + m.source.weight->name + ")" : "", ": ", m.source.cols,
                                  " columns are not a multiple of 16, which NVFP4 needs")).Hint("keep it as it is with --ignore-layers"));
  m.target = Format::Nvfp4();
  m.action = m.source.format.is_nvfp4() ? Action::kReuse : Action::kQuantize;
  return {};
}

class Planner {
 public:
  Planner(const PlanOptions& options) : options_(options) {}

  base::Status Decide(PlannedMatrix& m) {
    const TensorRole role = m.source.id.role;
    if (m.source.pre_scale) {
      // x * pre_scale would be an op before this one GEMM alone; folding it into decoded weights asks nothing of kernels and is as exact as BF16 is.
      ++folded;
      SetDequantize(m, options_);
      return {};
    }
    if (checkpoint::IsExpertRole(role)) return DecideExpert(m);
    if (IsDenseLinear(role)) return DecideDense(m);
    // Embedding, router, shared-expert gate: plain floats only. A router keeps every bit: FP16 and FP32 become FP32.
    if (!m.source.format.is_plain())
      return base::Fail(base::ErrorCode::kUnsupported, "tensor ", m.source.weight->name, ": ", m.source.format.ToString(), "; a ", TensorRoleName(role), " must be BF16, FP16 or FP32");
    SetKeep(m, options_);
    if (role != TensorRole::kEmbedding && m.source.format.elem != DType::kBF16) {
      m.action = m.source.format.elem == DType::kF32 ? Action::kKeep : Action::kConvert;
      m.target = Format::F32();
    }
    return {};
  }

  int64_t ignored_but_converted = 0;  // experts of the source's exclude list
  int64_t ignored = 0;                // experts kept because a list names them
  int64_t folded = 0;                 // matrices with AWQ factors

 private:
  base::Status DecideExpert(PlannedMatrix& m) {
    if (!ModeQuantizes(options_.mode)) { SetKeep(m, options_); return {}; }
    if (m.source.format.is_nvfp4()) return SetNvfp4(m);
    const std::string module = ModuleOf(m);
    const bool by_source = options_.source_ignored.Contains(module), by_user = options_.ignored.Contains(module) | options_.excluded.Contains(module);
    if (by_user || (by_source && (options_.obey_source_list || options_.mode == QuantMode::kModeloptFp4))) {
      ++ignored;
      SetKeep(m, options_);
      return {};
    }
    ignored_but_converted += by_source;
    return SetNvfp4(m);
  }

  static std::string ModuleOf(const PlannedMatrix& m) {
    return m.source.weight ? std::string(checkpoint::SplitTensorName(m.source.weight->name).stem) : m.source.id.ToString();
  }

  base::Status DecideDense(PlannedMatrix& m) {
    const Format& f = m.source.format;
    if (f.is_nvfp4() && ModeQuantizes(options_.mode)) return SetNvfp4(m);
    const bool wanted = options_.dense != DenseQuantization::kNone && (options_.convert_head || m.source.id.role != TensorRole::kLmHead) &&
                        !options_.excluded.Contains(ModuleOf(m));
    if (wanted && options_.dense == DenseQuantization::kNvfp4) return SetNvfp4(m);
    if (wanted && options_.dense == DenseQuantization::kFp8 && f.is_plain()) {
      m.action = Action::kQuantize;
      m.target = Format::Fp8(Outer::kPerRow);
      return {};
    }
    SetKeep(m, options_);
    return {};
  }

  const PlanOptions& options_;
};

// Gate and up of an expert are one GEMM: where a list keeps one of them, the other stays as well. Returns how many that were.
int64_t KeepPartners(QuantPlan& plan, const PlanOptions& options) {
  int64_t kept = 0;
  for (PlannedMatrix& gate : plan.matrices) {
    if (gate.source.id.role != TensorRole::kExpertGate) continue;
    auto at = plan.index.find({TensorRole::kExpertUp, gate.source.id.layer, gate.source.id.expert});
    if (at == plan.index.end()) continue;
    PlannedMatrix& up = plan.matrices[static_cast<size_t>(at->second)];
    if ((gate.action == Action::kQuantize) == (up.action == Action::kQuantize) || gate.target.is_nvfp4() == up.target.is_nvfp4()) continue;
    SetKeep(gate.action == Action::kQuantize ? gate : up, options);
    ++kept;
  }
  return kept;
}

// The partner that shares a unit with this matrix: (layer, expert, group). Matrices of equal keys are read together.
struct GroupKey {
  int32_t layer, expert;
  int group;  // 0 alone, 1 gate+up of an expert, 2 q+k+v, 3 dense gate+up, 4 shared gate+up, 5 embedding and its tied head
  friend auto operator<=>(const GroupKey&, const GroupKey&) = default;
};

int GroupOf(const PlannedMatrix& m, bool tied) {
  const bool to_nvfp4 = m.action == Action::kQuantize && m.target.is_nvfp4();
  switch (m.source.id.role) {
    case TensorRole::kExpertGate: case TensorRole::kExpertUp: return 1;
    case TensorRole::kQ: case TensorRole::kK: case TensorRole::kV: return to_nvfp4 ? 2 : 0;
    case TensorRole::kDenseGate: case TensorRole::kDenseUp: return to_nvfp4 ? 3 : 0;
    case TensorRole::kSharedGate: case TensorRole::kSharedUp: return to_nvfp4 ? 4 : 0;
    case TensorRole::kEmbedding: case TensorRole::kLmHead: return tied ? 5 : 0;
    default: return 0;
  }
}

std::vector<PlanUnit> MakeUnits(const std::vector<PlannedMatrix>& matrices, bool tied) {
  std::map<GroupKey, std::vector<int32_t>> groups;
  std::vector<PlanUnit> units;
  for (size_t i = 0; i < matrices.size(); ++i) {
    const int group = GroupOf(matrices[i], tied);
    if (group == 0) units.push_back({{static_cast<int32_t>(i)}, false});
    else groups[{matrices[i].source.id.layer, matrices[i].source.id.expert, group}].push_back(static_cast<int32_t>(i));
  }
  for (auto& [key, members] : groups) {
    // Only matrices that are quantized together share an amax; the head of a tied embedding never does.
    const bool shares = key.group != 5 && std::all_of(members.begin(), members.end(), [&](int32_t i) { return matrices[static_cast<size_t>(i)].action == Action::kQuantize; });
    units.push_back({std::move(members), shares});
  }
  auto completion = [&](const PlanUnit& u) {
    std::pair<int, uint64_t> at{0, 0};
    for (int32_t i : u.matrices) at = std::max(at, ReadingPosition(matrices[static_cast<size_t>(i)].source));
    return at;
  };
  std::stable_sort(units.begin(), units.end(), [&](const PlanUnit& a, const PlanUnit& b) { return completion(a) < completion(b); });
  return units;
}

void AddWarnings(QuantPlan& plan, const Planner& planner, const PlanOptions& options) {
  for (const PatternMatches& p : plan.patterns)
    if (p.matches == 0) plan.warnings.push_back(base::StrCat("pattern \"", p.pattern, "\" of ", p.from, options.excluded.empty() ? " matches no expert" : " matches nothing that could be converted"));
  if (planner.ignored_but_converted)
    plan.warnings.push_back(base::StrCat(planner.ignored_but_converted, " expert matrices that the checkpoint's exclude list names are converted: ",
                                         ModeName(options.mode), " obeys --ignore-layers only (modelopt_fp4 would keep them)"));
  if (planner.ignored && options.mode == QuantMode::kModeloptFp4)
    plan.warnings.push_back(base::StrCat(planner.ignored, " expert matrices are kept as they are (exclude list or --ignore-layers)"));
  if (planner.folded)
    plan.warnings.push_back(base::StrCat(planner.folded, " matrices have a pre_quant_scale (NVFP4_AWQ): they are decoded and multiplied by it, and take four times the memory of NVFP4"));
  int64_t no_input_scale = 0;
  if (options.mode == QuantMode::kModeloptFp4)
    for (const PlannedMatrix& m : plan.matrices)
      if (m.action == Action::kReuse && m.target.is_nvfp4() && !m.source.input_scale) {
        if (no_input_scale++ == 0)
          plan.warnings.push_back(base::StrCat("no input_scale for ", m.source.id.ToString(), checkpoint::IsExpertRole(m.source.id.role) ? ": the layer's largest is used, 1.0 where it has none" : ": 1.0 is used"));
      }
  if (no_input_scale > 1) plan.warnings.back() += base::StrCat(" (and for ", no_input_scale - 1, " more matrices)");
}

}  // namespace

std::pair<int, uint64_t> ReadingPosition(const SourceMatrix& m) {
  if (!m.weight) return {0, 0};  // a dummy
  const bool stacked = m.layout != StackedLayout::kPerExpert;
  std::pair<int, uint64_t> at{m.weight->file, m.weight->begin + static_cast<uint64_t>(m.stack_index) * (m.weight->size / static_cast<uint64_t>(stacked ? std::max<int64_t>(1, m.weight->shape[0]) : 1))};
  if (m.scale) at = std::max(at, {m.scale->file, m.scale->begin});
  return at;
}

std::string_view ActionName(Action action) {
  switch (action) {
    case Action::kKeep: return "keep";
    case Action::kConvert: return "convert";
    case Action::kDequantize: return "dequantize";
    case Action::kQuantize: return "quantize";
    case Action::kReuse: return "reuse";
  }
  return "?";
}

const PlannedMatrix* QuantPlan::Find(const TensorId& id) const {
  auto it = index.find(id);
  return it == index.end() ? nullptr : &matrices[static_cast<size_t>(it->second)];
}

int64_t QuantPlan::BytesBefore(const PlannedMatrix& m) const {
  return tied && m.source.id.role == TensorRole::kLmHead ? 0 : m.source.format.Bytes(m.source.rows, m.source.cols);
}

base::Result<QuantPlan> MakePlan(SourceMap sources, const PlanOptions& options) {
  QuantPlan plan;
  plan.mode = options.mode;
  plan.contract = options.contract;
  plan.vectors = std::move(sources.vectors);
  plan.warnings = std::move(sources.warnings);
  plan.skipped = std::move(sources.skipped);
  plan.discarded = static_cast<int64_t>(sources.discarded.size());
  plan.tied = sources.tied;
  bool any_expert = false;
  Planner planner(options);
  for (SourceMatrix& source : sources.matrices) {
    any_expert |= checkpoint::IsExpertRole(source.id.role);
    PlannedMatrix m{std::move(source), Action::kKeep, {}};
    HB_RETURN_IF_ERROR(planner.Decide(m));
    plan.index.emplace(m.source.id, static_cast<int32_t>(plan.matrices.size()));
    plan.matrices.push_back(std::move(m));
  }
  if (const int64_t partners = KeepPartners(plan, options))
    plan.warnings.push_back(base::StrCat(partners, " gate or up matrices stay as they are because a list names their partner"));
  const bool static_form = ModeActivations(options.mode) == kernels::ActivationForm::kNvfp4Static;
  std::set<const TensorEntry*> unread;
  for (const PlannedMatrix& m : plan.matrices) {
    if (m.source.input_scale && !(static_form && m.action == Action::kReuse)) unread.insert(m.source.input_scale);
    plan.bytes_before += plan.BytesBefore(m);
    plan.bytes_after += m.target.Bytes(m.source.rows, m.source.cols);
    plan.experts_converted += m.source.id.role == TensorRole::kExpertDown && m.action == Action::kQuantize;
  }
  plan.discarded += static_cast<int64_t>(unread.size());
  if (!any_expert && options.mode_is_explicit && ModeQuantizes(options.mode) && options.dense == DenseQuantization::kNone)
    return base::Fail(base::Error(base::ErrorCode::kInvalidArgument, base::StrCat("--quantization ", ModeName(options.mode), ": this model has no experts to convert"))
                          .Hint("use --quantization none, or convert its dense layers with --dense-quantization fp8|nvfp4"));
  plan.units = MakeUnits(plan.matrices, plan.tied);
  plan.patterns = options.ignored.Matches();
  for (PatternMatches& p : options.excluded.Matches()) plan.patterns.push_back(std::move(p));
  for (PatternMatches& p : options.source_ignored.Matches()) if (p.matches) plan.patterns.push_back(std::move(p));
  AddWarnings(plan, planner, options);
  return plan;
}

}  // namespace halfbyte::quant
