#include "quant/unit_worker.h"

#include <algorithm>
#include <numeric>

#include "numerics/mxfp4_cast.h"
#include "quant/convert.h"

namespace halfbyte::quant {
namespace {

// Dense matrices are read in pieces of about this size, so that a 600 MB embedding does not pass through memory at once.
constexpr int64_t kChunkBytes = 8 << 20;
constexpr int64_t kChunkRowMultiple = 128;  // of the usual block heights; others make their own multiple of it

}  // namespace

using tensor::DType;
using tensor::QuantizedMatrix;

base::Status UnitWorker::Run(const PlanUnit& unit) {
  if (unit.matrices.size() == 2 && Planned(unit, 0).source.weight == Planned(unit, 1).source.weight && Planned(unit, 0).source.half < 0)
    return RunTied(unit);
  if (Planned(unit, 0).action == Action::kQuantize && unit.shares_amax) return Quantize(unit.matrices);
  for (int32_t i : unit.matrices) {
    const PlannedMatrix& m = Member(i);
    if (m.action == Action::kQuantize && m.target.is_nvfp4()) HB_RETURN_IF_ERROR(Quantize({i}));
    else HB_RETURN_IF_ERROR(Stream(m, {&m}));
  }
  return {};
}

// An embedding and the head tied to it: each chunk is read once and put twice. A head that becomes NVFP4 needs the whole matrix.
base::Status UnitWorker::RunTied(const PlanUnit& unit) {
  const PlannedMatrix &a = Planned(unit, 0), &b = Planned(unit, 1);
  if (b.target.is_nvfp4() && b.action == Action::kQuantize) {
    HB_RETURN_IF_ERROR(Stream(a, {&a}));
    return Quantize({unit.matrices[1]});
  }
  return Stream(a, {&a, &b});
}

// Row chunks of one source, put to one or more targets that need no amax of the whole matrix.
base::Status UnitWorker::Stream(const PlannedMatrix& source, std::initializer_list<const PlannedMatrix*> targets) {
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

base::Status UnitWorker::PutChunk(const PlannedMatrix& m, int64_t begin, QuantizedMatrix q) {
  const TensorId& id = m.source.id;
  if (m.action == Action::kKeep || m.action == Action::kReuse) return sink_.PutMatrix(id, begin, q);
  if (m.action == Action::kQuantize) {  // FP8 by rows
    tensor::Matrix plain(q.elements, q.format.elem, q.rows, q.cols);
    codes_.resize(static_cast<size_t>(q.rows * q.cols));
    row_scales_.resize(static_cast<size_t>(q.rows));
    QuantizeRowsFp8(plain, codes_.data(), row_scales_.data());
    counters_.converted += q.rows * q.cols;
    return sink_.PutMatrix(id, begin, {m.target, q.rows, q.cols, codes_.data(), nullptr, row_scales_.data()});
  }
  plain_.resize(static_cast<size_t>(q.rows * q.cols * tensor::DTypeBits(m.target.elem) / 8));
  if (m.source.pre_scale && begin == 0) HB_RETURN_IF_ERROR(reader_.ReadPreScale(m.source, factors_));
  counters_.changed += ToPlain(q, m.target.elem, plain_.data(), m.source.pre_scale ? factors_.data() : nullptr);
  return sink_.PutMatrix(id, begin, {m.target, q.rows, q.cols, plain_.data(), nullptr, nullptr});
}

// One to three whole matrices that share their amax -> NVFP4.
base::Status UnitWorker::Quantize(const std::vector<int32_t>& members) {
  HB_CHECK(members.size() <= kMembers);
  if (std::all_of(members.begin(), members.end(), [&](int32_t i) { return Member(i).source.format == Format::Mxfp4(); })) return CastMx(members);
  numerics::AmaxResult amax;
  tensor::Matrix plain[kMembers];
  for (size_t i = 0; i < members.size(); ++i) {
    const SourceMatrix& m = Member(members[i]).source;
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
    const SourceMatrix& m = Member(members[i]).source;
    codes_.resize(static_cast<size_t>(m.rows * m.cols / 2));
    scales_.resize(static_cast<size_t>(m.rows * m.cols / 16));
    quantizer_.quantize(plan_.contract, plain[i].data, plain[i].dtype, m.rows, m.cols, scale, codes_.data(), scales_.data());
    HB_RETURN_IF_ERROR(PutNvfp4(Member(members[i]), scale.ws2));
  }
  return {};
}

// MXFP4 -> NVFP4 without loss: the codes stay, under one k_max for matrices that share their scale (numerics/mxfp4_cast.h).
base::Status UnitWorker::CastMx(const std::vector<int32_t>& members) {
  QuantizedMatrix mx[kMembers];
  std::optional<int> k_max;
  for (size_t i = 0; i < members.size(); ++i) {
    const SourceMatrix& m = Member(members[i]).source;
    HB_ASSIGN_OR_RETURN_AT(mx[i], reader_.Read(m, 0, m.rows, buffers_[i], slice_), m.id.ToString());
    CountRead(mx[i]);
    const auto own = numerics::MxMaxExponent({static_cast<const uint8_t*>(mx[i].block_scales), static_cast<size_t>(m.rows * m.cols / numerics::kMxBlock)});
    if (own) k_max = std::max(k_max.value_or(*own), *own);
  }
  for (size_t i = 0; i < members.size(); ++i) {
    const SourceMatrix& m = Member(members[i]).source;
    codes_.resize(static_cast<size_t>(m.rows * m.cols / 2));
    scales_.resize(static_cast<size_t>(m.rows * m.cols / 16));
    const auto cast = numerics::CastMxfp4(static_cast<const uint8_t*>(mx[i].elements), static_cast<const uint8_t*>(mx[i].block_scales), m.rows, m.cols, k_max,
                                          codes_.data(), scales_.data());
    counters_.mx_requantized += cast.requantized;
    HB_RETURN_IF_ERROR(PutNvfp4(Member(members[i]), numerics::MxWs2(k_max)));
  }
  return {};
}

base::Status UnitWorker::PutNvfp4(const PlannedMatrix& m, float ws2) {
  const SourceMatrix& s = m.source;
  counters_.converted += s.rows * s.cols;
  counters_.experts_done += s.id.role == TensorRole::kExpertDown;
  return sink_.PutMatrix(s.id, 0, {m.target, s.rows, s.cols, codes_.data(), scales_.data(), &ws2});
}

// What the quantizer sees: BF16 and FP16 as they are, everything else through BF16 (an FP8 source is decoded in FP32 and rounded once).
tensor::Matrix UnitWorker::ToQuantizerInput(const QuantizedMatrix& q, std::vector<uint16_t>& out) {
  if (q.format.elem == DType::kBF16 || q.format.elem == DType::kF16) return {q.elements, q.format.elem, q.rows, q.cols};
  out.resize(static_cast<size_t>(q.rows * q.cols));
  if (q.format.is_fp8()) quantizer_.fp8_to_bf16(static_cast<const uint8_t*>(q.elements), q.format.elem, q.cols, ScalesOf(q), 0, q.rows, out.data());
  else if (q.format == Format::F32()) quantizer_.f32_to_bf16(static_cast<const float*>(q.elements), q.rows * q.cols, out.data());
  else ToPlain(q, DType::kBF16, out.data());
  return {out.data(), DType::kBF16, q.rows, q.cols};
}

base::Status UnitWorker::CheckFinite(const SourceMatrix& m, const QuantizedMatrix& q) {
  if (int64_t n = CountNonfinite(q))
    return base::Fail(base::Error(base::ErrorCode::kBadFile, base::StrCat("tensor ", m.weight->name, " (", m.id.ToString(), "): ", n, " NaN or infinite weights"))
                          .Hint("the checkpoint is damaged; nothing was loaded"));
  return {};
}

}  // namespace halfbyte::quant
