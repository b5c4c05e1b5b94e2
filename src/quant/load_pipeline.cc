#include "quant/load_pipeline.h"

#include <memory>

#include "platform/parallel.h"
#include "quant/ordered_work.h"
#include "quant/unit_worker.h"

namespace halfbyte::quant {
namespace {

base::Status PutVectors(const checkpoint::Checkpoint& files, const QuantPlan& plan, WeightSink& sink) {
  MatrixReader reader(files);
  std::vector<float> values;
  for (const SourceVector& v : plan.vectors) {
    HB_RETURN_IF_ERROR(reader.ReadFloats(*v.entry, 0, v.size, values));
    // As the reference: a KV scale that was never measured (written as -1 or 0) is 1.
    if ((v.part == TensorPart::kKScale || v.part == TensorPart::kVScale) && values[0] <= 0) values[0] = 1.0f;
    HB_RETURN_IF_ERROR(sink.PutVector(v.id, v.part, values));
  }
  if (ModeActivations(plan.mode) != kernels::ActivationForm::kNvfp4Static) return {};
  for (const PlannedMatrix& m : plan.matrices) {
    if (m.action != Action::kReuse || !m.target.is_nvfp4()) continue;
    const bool expert = checkpoint::IsExpertRole(m.source.id.role);
    if (!m.source.input_scale) {  // an expert takes its layer's largest, a dense layer 1.0
      const float one = 1.0f;
      if (!expert) HB_RETURN_IF_ERROR(sink.PutVector(m.source.id, TensorPart::kInputScale, {&one, 1}));
      continue;
    }
    HB_ASSIGN_OR_RETURN(float scale, reader.ReadScalar(*m.source.input_scale, m.source));
    if (m.source.input_is_divisor) scale = 1.0f / scale;
    if (!(scale > 0) || !(scale < 1e30f))
      return base::Fail(base::ErrorCode::kBadFile, "tensor ", m.source.input_scale->name, ": an activation scale must be positive and finite");
    HB_RETURN_IF_ERROR(sink.PutVector(m.source.id, TensorPart::kInputScale, {&scale, 1}));
  }
  return {};
}

}  // namespace

base::Result<LoadStats> RunLoad(const checkpoint::Checkpoint& files, const QuantPlan& plan, WeightSink& sink, const LoadOptions& options) {
  WorkCounters counters;
  ProgressReporter progress(options.progress, counters, plan.bytes_before, plan.experts_converted);
  auto make = [&]() -> NumberedTask {
    auto worker = std::make_shared<UnitWorker>(files, plan, sink, counters, *options.quantizer);
    return [&plan, worker](size_t i) { return worker->Run(plan.units[i]); };
  };
  const int threads = options.workers > 0 ? options.workers : platform::AllowedThreads();
  HB_RETURN_IF_ERROR(RunInOrder(plan.units.size(), threads, make, [&] { progress.Maybe(); }));
  HB_RETURN_IF_ERROR(PutVectors(files, plan, sink));
  progress.Last();
  LoadStats stats;
  stats.bytes_read = counters.bytes_read;
  for (const PlannedMatrix& m : plan.matrices) stats.parameters += m.source.rows * m.source.cols;
  stats.parameters_converted = counters.converted;
  stats.mx_blocks_requantized = counters.mx_requantized;
  stats.changed_by_rounding = counters.changed;
  stats.seconds = progress.seconds();
  return stats;
}

}  // namespace halfbyte::quant
