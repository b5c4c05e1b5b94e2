#include "model/expert_ranges.h"

#include <algorithm>
#include <cmath>

#include "numerics/bf16.h"

namespace halfbyte::model {
namespace {

float Largest(const kernels::Matrix& m) {
  float most = 0;
  for (int64_t r = 0; r < m.rows; ++r)
    for (int64_t c = 0; c < m.cols; ++c) {
      const float v = m.dtype == tensor::DType::kBF16 ? numerics::Bf16ToFloat(m.row<uint16_t>(r)[c]) : m.row<float>(r)[c];
      most = std::max(most, std::fabs(v));
    }
  return most;
}

}  // namespace

ExpertRanges::ExpertRanges(const ModelSpec& spec) {
  for (size_t l = 0; l < spec.layers.size(); ++l)
    if (spec.layers[l].moe) layers_[static_cast<int32_t>(l)].rows.resize(static_cast<size_t>(spec.layers[l].moe->experts));
}

void ExpertRanges::Layer(int layer, const kernels::Matrix& x) {
  current_ = &layers_.at(layer);
  current_->x = std::max(current_->x, Largest(x));
}

void ExpertRanges::Hidden(int64_t expert, const kernels::Matrix& h) {
  current_->h = std::max(current_->h, Largest(h));
  current_->rows[static_cast<size_t>(expert)] += h.rows;
}

}  // namespace halfbyte::model
