#include "kernels/reference/weights.h"

#include <algorithm>

#include "base/check.h"

namespace halfbyte::kernels::reference {
namespace {

int64_t Rows(const ExpertsSpec& spec, int part) { return part == static_cast<int>(ExpertPart::kDown) ? spec.d : spec.f; }
int64_t Cols(const ExpertsSpec& spec, int part) { return part == static_cast<int>(ExpertPart::kDown) ? spec.f : spec.d; }

}  // namespace

base::Status ReferenceExperts::Supports(const ExpertsSpec& spec) {
  if (static_cast<int64_t>(spec.formats.size()) != spec.experts)
    return base::Fail(base::ErrorCode::kInvalidArgument, spec.experts, " experts with ", spec.formats.size(), " formats");
  for (const auto& formats : spec.formats)
    for (const Format& format : formats) HB_RETURN_IF_ERROR(StoredMatrix::Supports(format));
  return {};
}

int64_t ReferenceExperts::Bytes(const ExpertsSpec& spec) {
  int64_t bytes = 0;
  for (const auto& formats : spec.formats)
    for (int part = 0; part < 3; ++part) bytes += formats[static_cast<size_t>(part)].Bytes(Rows(spec, part), Cols(spec, part));
  return bytes;
}

base::Result<std::unique_ptr<ReferenceExperts>> ReferenceExperts::Create(ExpertsSpec spec) {
  HB_RETURN_IF_ERROR(Supports(spec));
  auto experts = std::unique_ptr<ReferenceExperts>(new ReferenceExperts(std::move(spec)));
  const ExpertsSpec& s = experts->spec_;
  experts->matrices_.resize(static_cast<size_t>(s.experts));
  experts->input_scales_.resize(static_cast<size_t>(s.experts));
  for (size_t e = 0; e < s.formats.size(); ++e)
    for (int part = 0; part < 3; ++part) {
      HB_ASSIGN_OR_RETURN_AT(experts->matrices_[e][static_cast<size_t>(part)],
                             StoredMatrix::Create(s.formats[e][static_cast<size_t>(part)], Rows(s, part), Cols(s, part)),
                             base::StrCat("expert ", e));
    }
  return experts;
}

void ReferenceExperts::SetInputScale(int64_t expert, ExpertPart part, float input_scale) {
  HB_CHECK(0 <= expert && expert < spec_.experts);
  std::lock_guard lock(mutex_);
  input_scales_[static_cast<size_t>(expert)][static_cast<size_t>(part)] = input_scale;
}

float ReferenceExperts::LayerInputScale(ExpertPart part) const {
  std::lock_guard lock(mutex_);
  std::optional<float> largest;
  for (const auto& scales : input_scales_)
    for (int p = 0; p < 3; ++p) {
      if ((part == ExpertPart::kDown) != (p == static_cast<int>(ExpertPart::kDown))) continue;
      if (scales[static_cast<size_t>(p)]) largest = std::max(largest.value_or(0.0f), *scales[static_cast<size_t>(p)]);
    }
  return largest.value_or(1.0f);
}

void ReferenceExperts::CopyFrom(const ExpertsWeight& same) {
  const auto& other = static_cast<const ReferenceExperts&>(same);
  HB_CHECK(matrices_.size() == other.matrices_.size(), "another number of experts");
  for (size_t e = 0; e < matrices_.size(); ++e)
    for (size_t p = 0; p < 3; ++p) matrices_[e][p]->CopyFrom(*other.matrices_[e][p]);
  input_scales_ = other.input_scales_;
}

void ReferenceExperts::Drop() {
  for (auto& expert : matrices_)
    for (auto& matrix : expert) matrix->Drop();
}

}  // namespace halfbyte::kernels::reference
