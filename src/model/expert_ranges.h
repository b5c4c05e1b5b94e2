// ExpertRanges: the largest magnitudes that enter the experts of each layer, for static activation scales (quantize --calibrate).
#pragma once

#include <map>
#include <vector>

#include "model/model.h"

namespace halfbyte::model {

class ExpertRanges : public ExpertObserver {
 public:
  struct Range {
    float x = 0, h = 0;            // over all rows: inputs of gate and up, inputs of down
    std::vector<int64_t> rows;     // that each expert got
  };

  explicit ExpertRanges(const ModelSpec& spec);

  void Layer(int layer, const kernels::Matrix& x) override;
  void Hidden(int64_t expert, const kernels::Matrix& h) override;

  // Layers with experts.
  const std::map<int32_t, Range>& layers() const { return layers_; }

 private:
  std::map<int32_t, Range> layers_;
  Range* current_ = nullptr;
};

}  // namespace halfbyte::model
