#include "quant/export_scales.h"

#include <algorithm>
#include <cmath>

#include "quant/matrix_reader.h"

namespace halfbyte::quant {
namespace {

// A scalar as its file has it: a multiplier or a divisor.
struct Scalar {
  float value = 1.0f;
  bool divisor = false;
  float As(bool want_divisor) const { return divisor == want_divisor ? value : 1.0f / value; }
};

base::Result<Scalar> ReadPositive(const MatrixReader& reader, const TensorEntry& entry, const SourceMatrix& m, bool divisor) {
  HB_ASSIGN_OR_RETURN(const float value, reader.ReadScalar(entry, m));
  if (!(value > 0) || !std::isfinite(1.0f / value))
    return base::Fail(base::ErrorCode::kBadFile, "tensor ", entry.name, ": ", value, ", an activation scale must be positive and finite, and so must its reciprocal");
  return Scalar{value, divisor};
}

// weight_scale_2 or weight_global_scale of a matrix that stays NVFP4. Zero is fine for a multiplier (some producers write it for zero matrices).
base::Result<float> ReadOuter(const MatrixReader& reader, const SourceMatrix& m, bool want_divisor) {
  HB_ASSIGN_OR_RETURN(const float value, reader.ReadScalar(*m.outer, m));
  const float out = Scalar{value, m.outer_is_divisor}.As(want_divisor);
  if (!std::isfinite(out)) return base::Fail(base::ErrorCode::kBadFile, "tensor ", m.outer->name, ": ", value, " has no reciprocal");
  return out;
}

// Matrices that read the same activations: gate and up of a layer's experts, or its downs.
using GemmKey = std::pair<int32_t, bool>;  // layer, is down
GemmKey GemmOf(const TensorId& id) { return {id.layer, id.role == TensorRole::kExpertDown}; }

class InputScales {
 public:
  InputScales(const MatrixReader& reader, const ExportPlan& plan) : reader_(reader), plan_(plan) {}

  base::Status ReadOwn() {
    for (const auto& [id, e] : plan_.written) {
      const SourceMatrix& m = plan_.load.matrices[static_cast<size_t>(e.matrix)].source;
      if (!m.input_scale) continue;
      HB_ASSIGN_OR_RETURN(const Scalar own, ReadPositive(reader_, *m.input_scale, m, m.input_is_divisor));
      own_[id] = own;
      if (!checkpoint::IsExpertRole(id.role)) continue;
      auto [largest, fresh] = largest_.emplace(GemmOf(id), own);
      if (!fresh && own.As(false) > largest->second.As(false)) largest->second = own;
    }
    return {};
  }

  Scalar Of(const TensorId& id) {
    const bool expert = checkpoint::IsExpertRole(id.role);
    if (auto measured = plan_.input_scales.find(id.layer); expert && measured != plan_.input_scales.end())
      return {id.role == TensorRole::kExpertDown ? measured->second.down : measured->second.gate_up};
    if (auto own = own_.find(id); own != own_.end()) return own->second;
    if (auto largest = largest_.find(GemmOf(id)); expert && largest != largest_.end()) {
      if (filled_++ == 0) first_filled_ = id;
      return largest->second;
    }
    return {};
  }

  void Warn(std::vector<std::string>& warnings) const {
    if (filled_) warnings.push_back(base::StrCat("no input_scale for ", first_filled_.ToString(), filled_ > 1 ? base::StrCat(" and ", filled_ - 1, " more matrices") : "",
                                                 ": the layer's largest is written"));
  }

 private:
  const MatrixReader& reader_;
  const ExportPlan& plan_;
  std::map<TensorId, Scalar> own_;
  std::map<GemmKey, Scalar> largest_;
  int64_t filled_ = 0;
  TensorId first_filled_;
};

}  // namespace

base::Result<std::vector<ExportedScalar>> ExportScalars(const checkpoint::Checkpoint& files, const ExportPlan& plan, std::vector<std::string>& warnings) {
  const MatrixReader reader(files);
  const Nvfp4Dialect& d = DialectOf(plan.format);
  InputScales inputs(reader, plan);
  if (!plan.config.weight_only) HB_RETURN_IF_ERROR(inputs.ReadOwn());
  std::vector<ExportedScalar> out;
  for (const auto& [id, e] : plan.written) {
    const PlannedMatrix& m = plan.load.matrices[static_cast<size_t>(e.matrix)];
    if (m.action == Action::kReuse) {
      HB_ASSIGN_OR_RETURN(const float outer, ReadOuter(reader, m.source, d.divisors));
      out.push_back({e.module + std::string(d.outer), outer});
    }
    if (!plan.config.weight_only) out.push_back({e.module + std::string(d.input), inputs.Of(id).As(d.divisors)});
  }
  inputs.Warn(warnings);
  return out;
}

}  // namespace halfbyte::quant
