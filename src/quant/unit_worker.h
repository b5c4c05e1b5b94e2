// UnitWorker: carries out one unit of a QuantPlan at a time on one thread: read > dequantize > amax > quantize > put.
#pragma once

#include <atomic>
#include <initializer_list>
#include <vector>

#include "kernels/api/weight_quantizer.h"
#include "quant/matrix_reader.h"
#include "quant/plan.h"
#include "quant/weight_sink.h"

namespace halfbyte::quant {

// What all workers of a load count together.
struct WorkCounters {
  std::atomic<int64_t> bytes_read{0}, experts_done{0}, converted{0}, changed{0}, mx_requantized{0};
};

// Owns buffers that grow to the largest matrix it meets and are reused.
class UnitWorker {
 public:
  UnitWorker(const checkpoint::Checkpoint& files, const QuantPlan& plan, WeightSink& sink, WorkCounters& counters, const kernels::WeightQuantizer& quantizer)
      : reader_(files), plan_(plan), sink_(sink), counters_(counters), quantizer_(quantizer) {}

  base::Status Run(const PlanUnit& unit);

 private:
  const PlannedMatrix& Planned(const PlanUnit& unit, size_t i) const { return plan_.matrices[static_cast<size_t>(unit.matrices[i])]; }
  base::Status RunTied(const PlanUnit& unit);
  base::Status Stream(const PlannedMatrix& source, std::initializer_list<const PlannedMatrix*> targets);
  base::Status PutChunk(const PlannedMatrix& m, int64_t begin, tensor::QuantizedMatrix q);
  base::Status Quantize(const std::vector<int32_t>& members);
  base::Status CastMx(const std::vector<int32_t>& members);
  base::Status PutNvfp4(const PlannedMatrix& m, float ws2);
  const PlannedMatrix& Member(int32_t i) const { return plan_.matrices[static_cast<size_t>(i)]; }
  tensor::Matrix ToQuantizerInput(const tensor::QuantizedMatrix& q, std::vector<uint16_t>& out);
  base::Status CheckFinite(const SourceMatrix& m, const tensor::QuantizedMatrix& q);
  void CountRead(const tensor::QuantizedMatrix& q) { counters_.bytes_read += q.format.Bytes(q.rows, q.cols); }

  MatrixReader reader_;
  const QuantPlan& plan_;
  WeightSink& sink_;
  WorkCounters& counters_;
  static constexpr size_t kMembers = 3;  // q, k and v share an amax
  MatrixBuffer buffers_[kMembers];
  SliceBuffer slice_;
  std::vector<uint16_t> bf16_[kMembers];
  const kernels::WeightQuantizer& quantizer_;
  std::vector<uint8_t> codes_, scales_;
  std::vector<float> row_scales_, factors_;
  std::vector<std::byte> plain_;
};

}  // namespace halfbyte::quant
