#include "quant/load_pipeline.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <numeric>
#include <thread>

#include "kernels/api/weight_quantizer.h"
#include "platform/parallel.h"
#include "quant/convert.h"
#include "quant/matrix_reader.h"

namespace halfbyte::quant {
namespace {

using tensor::DType;
using tensor::QuantizedMatrix;

// Dense matrices are read in pieces of about this size, so that a 600 MB embedding does not pass through memory at once.
constexpr int64_t kChunkBytes = 8 << 20;
constexpr int64_t kChunkRowMultiple = 128;  // of the usual block heights; others make their own multiple of it

constexpr size_t kMostShared = 3;  // matrices that share an amax: q, k and v

struct Shared {
  std::atomic<int64_t> bytes_read{0}, experts_done{0}, converted{0}, changed{0};
  std::atomic<size_t> next_unit{0};
  std::atomic<size_t> failed_at{SIZE_MAX};
  std::mutex mutex;
  std::optional<base::Error> error;
};

// What one worker owns; buffers grow to the largest matrix it meets and are reused.
class Worker {
 public:
  Worker(const checkpoint::Checkpoint& files, const QuantPlan& plan, WeightSink& sink, Shared& shared)
      : reader_(files), plan_(plan), sink_(sink), shared_(shared) {}

  base::Status Run(const PlanUnit& unit) {
    if (unit.matrices.size() == 2 && Planned(unit, 0).source.weight == Planned(unit, 1).source.weight && Planned(unit, 0).source.half < 0)
      return RunTied(unit);
    if (Planned(unit, 0).action == Action::kQuantize && unit.shares_amax) return Quantize(unit.matrices);
    for (int32_t i : unit.matrices) {
      const PlannedMatrix& m = plan_.matrices[static_cast<size_t>(i)];
      if (m.action == Action::kQuantize && m.target.is_nvfp4()) HB_RETURN_IF_ERROR(Quantize({i}));
      else HB_RETURN_IF_ERROR(Stream(m, {&m}));
    }
    return {};
  }

 private:
  const PlannedMatrix& Planned(const PlanUnit& unit, size_t i) const { return plan_.matrices[static_cast<size_t>(unit.matrices[i])]; }

  // An embedding and the head tied to it: each chunk is read once and put twice. A head that becomes NVFP4 needs the whole matrix.
  base::Status RunTied(const PlanUnit& unit) {
    const PlannedMatrix &a = Planned(unit, 0), &b = Planned(unit, 1);
    if (b.target.is_nvfp4() && b.action == Action::kQuantize) {
      HB_RETURN_IF_ERROR(Stream(a, {&a}));
      return Quantize({unit.matrices[1]});
    }
    return Stream(a, {&a, &b});
  }

  // Row chunks of one source, put to one or more targets that need no amax of the whole matrix.
  base::Status Stream(const PlannedMatrix& source, std::initializer_list<const PlannedMatrix*> targets) {
    const SourceMatrix& m = source.source;
    int64_t rows = m.rows;
    if (MatrixReader::CanReadRows(m)) {
      const int64_t row_bytes = std::max<int64_t>(1, m.format.Bytes(1, m.cols));
      const int64_t multiple = std::lcm(kChunkRowMultiple, std::max<int64_t>(1, m.format.block_rows));  // a block must not be cut
      rows = std::min(m.rows, std::max<int64_t>(1, kChunkBytes / row_bytes / multiple) * multiple);
    }
    for (int64_t begin = 0; begin < m.rows; begin += rows) {
      const int64_t n = std::min(rows, m.rows - begin);
      HB_ASSIGN_OR_RETURN_AT(QuantizedMatrix q, reader_.Read(m, begin, n, buffers_[0], slice_), m.id.ToString());
      HB_RETURN_IF_ERROR(CheckFinite(m, q));
      CountRead(q);
      for (const PlannedMatrix* target : targets) HB_RETURN_IF_ERROR(PutChunk(*target, begin, q));
    }
    return {};
  }

  base::Status PutChunk(const PlannedMatrix& m, int64_t begin, QuantizedMatrix q) {
    const TensorId& id = m.source.id;
    if (m.action == Action::kKeep || m.action == Action::kReuse) return sink_.PutMatrix(id, begin, q);
    if (m.action == Action::kQuantize) {  // FP8 by rows
      tensor::Matrix plain(q.elements, q.format.elem, q.rows, q.cols);
      codes_.resize(static_cast<size_t>(q.rows * q.cols));
      row_scales_.resize(static_cast<size_t>(q.rows));
      QuantizeRowsFp8(plain, codes_.data(), row_scales_.data());
      shared_.converted += q.rows * q.cols;
      return sink_.PutMatrix(id, begin, {m.target, q.rows, q.cols, codes_.data(), nullptr, row_scales_.data()});
    }
    plain_.resize(static_cast<size_t>(q.rows * q.cols * tensor::DTypeBits(m.target.elem) / 8));
    shared_.changed += ToPlain(q, m.target.elem, plain_.data());
    return sink_.PutMatrix(id, begin, {m.target, q.rows, q.cols, plain_.data(), nullptr, nullptr});
  }

  // One to three whole matrices that share their amax -> NVFP4.
  base::Status Quantize(const std::vector<int32_t>& members) {
    HB_CHECK(members.size() <= kMostShared);
    numerics::AmaxResult amax;
    tensor::Matrix plain[kMostShared];
    for (size_t i = 0; i < members.size(); ++i) {
      const SourceMatrix& m = plan_.matrices[static_cast<size_t>(members[i])].source;
      HB_ASSIGN_OR_RETURN_AT(QuantizedMatrix q, reader_.Read(m, 0, m.rows, buffers_[i], slice_), m.id.ToString());
      CountRead(q);
      plain[i] = ToQuantizerInput(q, bf16_[i]);
      const numerics::AmaxResult own = quantizer_.amax(plain[i].data, plain[i].dtype, m.rows * m.cols);
      if (own.nan_count || own.inf_count)
        return base::Fail(base::Error(base::ErrorCode::kBadFile, base::StrCat("tensor ", m.weight->name, " (", m.id.ToString(), "): ", own.nan_count, " NaN and ",
                                      own.inf_count, " infinite weights")).Hint("the checkpoint is damaged; nothing was converted"));
      amax = numerics::Merge(amax, own);
    }
    const numerics::GlobalScale scale = numerics::GlobalScaleFor(plan_.contract, amax.amax);
    for (size_t i = 0; i < members.size(); ++i) {
      const PlannedMatrix& planned = plan_.matrices[static_cast<size_t>(members[i])];
      const SourceMatrix& m = planned.source;
      codes_.resize(static_cast<size_t>(m.rows * m.cols / 2));
      scales_.resize(static_cast<size_t>(m.rows * m.cols / 16));
      quantizer_.quantize(plan_.contract, plain[i].data, plain[i].dtype, m.rows, m.cols, scale, codes_.data(), scales_.data());
      shared_.converted += m.rows * m.cols;
      shared_.experts_done += m.id.role == TensorRole::kExpertDown;
      HB_RETURN_IF_ERROR(sink_.PutMatrix(m.id, 0, {planned.target, m.rows, m.cols, codes_.data(), scales_.data(), &scale.ws2}));
    }
    return {};
  }

  // What the quantizer sees: BF16 and FP16 as they are, everything else through BF16 (an FP8 source is decoded in FP32 and rounded once).
  tensor::Matrix ToQuantizerInput(const QuantizedMatrix& q, std::vector<uint16_t>& out) {
    if (q.format.elem == DType::kBF16 || q.format.elem == DType::kF16) return {q.elements, q.format.elem, q.rows, q.cols};
    out.resize(static_cast<size_t>(q.rows * q.cols));
    if (q.format.is_fp8()) quantizer_.fp8_to_bf16(static_cast<const uint8_t*>(q.elements), q.format.elem, q.cols, ScalesOf(q), 0, q.rows, out.data());
    else if (q.format == Format::F32()) quantizer_.f32_to_bf16(static_cast<const float*>(q.elements), q.rows * q.cols, out.data());
    else ToPlain(q, DType::kBF16, out.data());
    return {out.data(), DType::kBF16, q.rows, q.cols};
  }

  base::Status CheckFinite(const SourceMatrix& m, const QuantizedMatrix& q) {
    if (int64_t n = CountNonfinite(q))
      return base::Fail(base::Error(base::ErrorCode::kBadFile, base::StrCat("tensor ", m.weight->name, " (", m.id.ToString(), "): ", n, " NaN or infinite weights"))
                            .Hint("the checkpoint is damaged; nothing was loaded"));
    return {};
  }
  void CountRead(const QuantizedMatrix& q) { shared_.bytes_read += q.format.Bytes(q.rows, q.cols); }

  MatrixReader reader_;
  const QuantPlan& plan_;
  WeightSink& sink_;
  Shared& shared_;
  MatrixBuffer buffers_[kMostShared];
  SliceBuffer slice_;
  std::vector<uint16_t> bf16_[kMostShared];
  const kernels::WeightQuantizer& quantizer_ = kernels::ChooseWeightQuantizer();
  std::vector<uint8_t> codes_, scales_;
  std::vector<float> row_scales_;
  std::vector<std::byte> plain_;
};

// Remembers the error of the earliest unit: which worker failed first is chance, the message should not be.
void Fail(Shared& shared, size_t unit, base::Error error) {
  std::lock_guard lock(shared.mutex);
  if (unit < shared.failed_at) { shared.failed_at = unit; shared.error = std::move(error); }
}

base::Status PutVectors(const checkpoint::Checkpoint& files, const QuantPlan& plan, WeightSink& sink) {
  MatrixReader reader(files);
  std::vector<float> values;
  for (const SourceVector& v : plan.vectors) {
    HB_RETURN_IF_ERROR(reader.ReadFloats(*v.entry, 0, v.size, values));
    HB_RETURN_IF_ERROR(sink.PutVector(v.id, v.part, values));
  }
  if (ModeActivations(plan.mode) != kernels::ActivationForm::kNvfp4Static) return {};
  for (const PlannedMatrix& m : plan.matrices) {
    if (!m.source.input_scale || m.action != Action::kReuse) continue;
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
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  Shared shared;
  std::atomic<int64_t> next_report{0};
  auto report = [&](bool last) {
    if (!options.progress) return;
    int64_t now = static_cast<int64_t>(seconds() * 1000), due = next_report;
    if (!last && (now < due || !next_report.compare_exchange_strong(due, now + 100))) return;
    std::lock_guard lock(shared.mutex);
    options.progress({shared.bytes_read, plan.bytes_before, shared.experts_done, plan.experts_converted, seconds()});
  };
  auto work = [&] {
    Worker worker(files, plan, sink, shared);
    for (;;) {
      const size_t i = shared.next_unit++;
      if (i >= plan.units.size() || shared.failed_at != SIZE_MAX) return;
      if (base::Status status = worker.Run(plan.units[i]); !status) { Fail(shared, i, std::move(status).error()); return; }
      report(false);
    }
  };
  const int workers = std::max(1, options.workers > 0 ? options.workers : platform::AllowedThreads());
  {
    std::vector<std::jthread> threads;
    for (int i = 1; i < workers; ++i) threads.emplace_back(work);
    work();
  }
  if (shared.error) return base::Fail(std::move(*shared.error));
  HB_RETURN_IF_ERROR(PutVectors(files, plan, sink));
  report(true);
  LoadStats stats;
  stats.bytes_read = shared.bytes_read;
  for (const PlannedMatrix& m : plan.matrices) stats.parameters += m.source.rows * m.source.cols;
  stats.parameters_converted = shared.converted;
  stats.changed_by_rounding = shared.changed;
  stats.seconds = seconds();
  return stats;
}

}  // namespace halfbyte::quant
