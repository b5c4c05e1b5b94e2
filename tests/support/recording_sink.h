// A WeightSink that keeps the bytes it is given, so that tests can look at what a load would have packed.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "quant/weight_sink.h"

namespace halfbyte::test {

// One finished matrix in its target format; parts put together by their rows.
struct RecordedMatrix {
  tensor::Format format;
  int64_t cols = 0;
  std::map<int64_t, int64_t> rows;  // row_begin -> rows, one entry a part
  std::string elements, block_scales;
  std::vector<float> outer;

  // How often it was put does not count.
  friend bool operator==(const RecordedMatrix& a, const RecordedMatrix& b) {
    return a.format == b.format && a.cols == b.cols && a.elements == b.elements && a.block_scales == b.block_scales &&
           std::equal(a.outer.begin(), a.outer.end(), b.outer.begin(), b.outer.end(), [](float x, float y) { return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y); });
  }
};

class RecordingSink : public quant::WeightSink {
 public:
  base::Status PutMatrix(const quant::TensorId& id, int64_t row_begin, const tensor::QuantizedMatrix& part) override {
    std::lock_guard lock(mutex_);
    RecordedMatrix& m = matrices[id];
    m.format = part.format;
    m.cols = part.cols;
    if (!m.rows.emplace(row_begin, part.rows).second) return base::Fail(base::ErrorCode::kInternal, id.ToString(), ": row ", row_begin, " came twice");
    const auto* elements = static_cast<const char*>(part.elements);
    Place(m.elements, static_cast<size_t>(row_begin * part.cols * tensor::DTypeBits(part.format.elem) / 8), elements, static_cast<size_t>(part.rows * part.cols * tensor::DTypeBits(part.format.elem) / 8));
    if (part.format.block_scale) {
      const int64_t item = tensor::DTypeBits(*part.format.block_scale) / 8, cols = (part.cols + part.format.block_cols - 1) / part.format.block_cols;
      const int64_t first = row_begin / part.format.block_rows, rows = (part.rows + part.format.block_rows - 1) / part.format.block_rows;
      Place(m.block_scales, static_cast<size_t>(first * cols * item), static_cast<const char*>(part.block_scales), static_cast<size_t>(rows * cols * item));
    }
    if (part.format.outer == tensor::Outer::kPerTensor) m.outer.assign(1, *part.outer);
    if (part.format.outer == tensor::Outer::kPerRow) {
      m.outer.resize(std::max(m.outer.size(), static_cast<size_t>(row_begin + part.rows)));
      std::copy(part.outer, part.outer + part.rows, m.outer.begin() + row_begin);
    }
    return {};
  }
  base::Status PutVector(const quant::TensorId& id, quant::TensorPart part, std::span<const float> values) override {
    std::lock_guard lock(mutex_);
    vectors[{id, part}].assign(values.begin(), values.end());
    return {};
  }

  std::map<quant::TensorId, RecordedMatrix> matrices;
  std::map<std::pair<quant::TensorId, quant::TensorPart>, std::vector<float>> vectors;

 private:
  static void Place(std::string& out, size_t at, const char* data, size_t bytes) {
    out.resize(std::max(out.size(), at + bytes));
    std::memcpy(out.data() + at, data, bytes);
  }
  std::mutex mutex_;
};

}  // namespace halfbyte::test
