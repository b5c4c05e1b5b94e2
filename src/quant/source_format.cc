#include "quant/source_format.h"

#include <utility>

namespace halfbyte::quant {
namespace {

using tensor::DType;
using tensor::Outer;

bool IsStacked(const SourceMatrix& m) { return m.layout != StackedLayout::kPerExpert; }
bool IsTransposed(const SourceMatrix& m) {
  return m.layout == StackedLayout::kTransposed || m.layout == StackedLayout::kTransposedInterleaved;
}
int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

tl::unexpected<base::Error> Wrong(const TensorEntry& e, std::string_view wanted) {
  return base::Fail(base::ErrorCode::kBadFile, "tensor ", e.name, ": ", DTypeName(e.dtype), " ", e.shape.ToString(), ", ", wanted, " is wanted");
}

// The companion of a stacked tensor has a slice for every expert, or is one value for all of them.
base::Status CheckStackedScale(const SourceMatrix& m, const TensorEntry& scale) {
  if (!IsStacked(m) || scale.shape.elements() == 1) return {};
  if (scale.shape.rank() >= 1 && scale.shape[0] == m.weight->shape[0]) return {};
  return Wrong(scale, base::StrCat("a slice for each of ", m.weight->shape[0], " experts"));
}

// Rows of the tensor's slice that this matrix's half has partners in: 2F for a gate_up tensor.
int64_t SliceRows(const SourceMatrix& m) { return m.half >= 0 ? 2 * m.rows : m.rows; }

// A slice's extents as the file has them: transposed tensors are [in, out]. Trailing extents of one do not count.
std::vector<int64_t> Extents(const SourceMatrix& m, int64_t rows, int64_t cols) {
  std::vector<int64_t> want{rows, cols};
  if (IsTransposed(m)) std::swap(want[0], want[1]);
  while (!want.empty() && want.back() == 1) want.pop_back();
  return want;
}

base::Status CheckWeightShape(const SourceMatrix& m, int64_t elements_per_item) {
  const TensorEntry& e = *m.weight;
  int64_t rows = SliceRows(m), cols = m.cols;
  std::vector<int64_t> want = IsTransposed(m) ? std::vector<int64_t>{cols, rows} : std::vector<int64_t>{rows, cols};
  (IsTransposed(m) ? want[0] : want[1]) /= elements_per_item;
  std::vector<int64_t> have = e.shape.dims();
  // gpt-oss keeps the 16 bytes of each block of 32 apart: [experts, out, in/32, 16].
  if (elements_per_item == 2 && have.size() == want.size() + (IsStacked(m) ? 2u : 1u) && have.back() == 16) {
    have.pop_back();
    have.back() *= 16;
  }
  if (!IsStacked(m)) return have == want ? base::Status() : Wrong(e, tensor::Shape(want).ToString());
  if (have.size() == 3 && m.stack_index < have[0] && have[1] == want[0] && have[2] == want[1]) return {};
  return Wrong(e, base::StrCat("[experts, ", want[0], ", ", want[1], "]"));
}

// UE8M0 exponents in int32 words, four blocks of 128 columns each; one row of words for every row of W (as DeepGEMM wants them: 128 copies each) or for
// every 128 rows.
bool IsPackedUe8m0(const SourceMatrix& m) {
  if (m.scale->dtype != DType::kI32 || IsTransposed(m) || m.scale->shape.rank() != (IsStacked(m) ? 3 : 2)) return false;
  const std::vector<int64_t> s = SliceExtents(*m.scale, IsStacked(m));
  const int64_t words = CeilDiv(CeilDiv(m.cols, 128), 4), rows = SliceRows(m);
  return s == Extents(m, rows, words) || s == Extents(m, CeilDiv(rows, 128), words);
}

// FP8: the scale's shape says what it scales.
base::Result<Format> DetectFp8(const SourceMatrix& m, const SourceOptions& options) {
  if (!m.scale)
    return base::Fail(base::Error(base::ErrorCode::kBadFile, base::StrCat("tensor ", m.weight->name, ": FP8 without a weight_scale"))
                          .Hint("the values cannot be known without it; the checkpoint is incomplete"));
  HB_RETURN_IF_ERROR(CheckWeightShape(m, 1));
  HB_RETURN_IF_ERROR(CheckStackedScale(m, *m.scale));
  const DType elem = m.weight->dtype;
  const std::vector<int64_t> s = SliceExtents(*m.scale, IsStacked(m));
  const int64_t rows = SliceRows(m);
  auto block = [&](int64_t bn, int64_t bk) { return Format{elem, DType::kF32, static_cast<int32_t>(bn), static_cast<int32_t>(bk), Outer::kNone}; };
  auto is_block = [&](int64_t bn, int64_t bk) { return s == Extents(m, CeilDiv(rows, bn), CeilDiv(m.cols, bk)); };
  if (IsPackedUe8m0(m)) return block(128, 128);
  if (m.scale->dtype == DType::kI32) return Wrong(*m.scale, base::StrCat("int32 words of four UE8M0 exponents, [", rows, ", ", CeilDiv(CeilDiv(m.cols, 128), 4), "]"));
  if (IsStacked(m) && m.scale->shape.elements() == 1) return Format{elem, std::nullopt, 0, 0, Outer::kPerTensor};  // one for all experts
  // A block scale may look like a row scale where a block covers all columns, so the block size of the metadata is tried first.
  if (options.fp8_block && m.scale->shape.rank() >= 2 && is_block(options.fp8_block->first, options.fp8_block->second))
    return block(options.fp8_block->first, options.fp8_block->second);
  if (s.empty()) return Format{elem, std::nullopt, 0, 0, Outer::kPerTensor};
  if (s == std::vector<int64_t>{rows} || s == Extents(m, rows, 1)) return Format{elem, std::nullopt, 0, 0, Outer::kPerRow};
  if (m.scale->dtype == DType::kU8 || m.scale->dtype == DType::kF8E8M0)  // MXFP8: one power of two for 32 columns
    if (m.cols % 32 == 0 && is_block(1, 32)) return block(1, 32);
  if (!options.fp8_block && is_block(128, 128)) return block(128, 128);
  return Wrong(*m.scale, base::StrCat("a scale for the tensor, for each of ", rows, " rows, or for blocks of ",
                                      options.fp8_block ? base::StrCat(options.fp8_block->first, "x", options.fp8_block->second) : "128x128"));
}

// Packed 4-bit codes: E4M3 scales for 16 columns and an FP32 scale (NVFP4), or E8M0 scales for 32 (MXFP4).
base::Result<Format> DetectFp4(const SourceMatrix& m) {
  if (!m.scale)
    return base::Fail(base::Error(base::ErrorCode::kBadFile, base::StrCat("tensor ", m.weight->name, ": packed 4-bit codes without block scales"))
                          .Hint("the values cannot be known without them; the checkpoint is incomplete"));
  HB_RETURN_IF_ERROR(CheckWeightShape(m, 2));
  HB_RETURN_IF_ERROR(CheckStackedScale(m, *m.scale));
  std::vector<int64_t> s = SliceExtents(*m.scale, IsStacked(m));
  auto is = [&](int64_t group) { return m.cols % group == 0 && s == Extents(m, SliceRows(m), m.cols / group); };
  if (m.scale->dtype == DType::kF8E4M3) {
    if (!is(16)) return Wrong(*m.scale, base::StrCat("[", SliceRows(m), ", ", m.cols / 16, "]"));
    if (!m.outer)
      return base::Fail(base::ErrorCode::kBadFile, "tensor ", m.weight->name, ": NVFP4 codes without weight_scale_2 or weight_global_scale");
    return Format::Nvfp4();
  }
  if ((m.scale->dtype == DType::kU8 || m.scale->dtype == DType::kF8E8M0) && is(32)) return Format::Mxfp4();
  return Wrong(*m.scale, "E4M3 scales for 16 columns or E8M0 scales for 32 columns");
}

}  // namespace

std::vector<int64_t> SliceExtents(const TensorEntry& entry, bool stacked) {
  std::vector<int64_t> dims(entry.shape.dims());
  if (stacked && !dims.empty()) dims.erase(dims.begin());
  // [ceil, 1, ceil, 1] is how some ModelOpt versions save block scales.
  if (dims.size() == 4 && dims[1] == 1 && dims[3] == 1) dims = {dims[0], dims[2]};
  while (!dims.empty() && dims.back() == 1) dims.pop_back();
  return dims;
}

base::Result<Format> DetectFormat(const SourceMatrix& m, const SourceOptions& options) {
  const TensorEntry& e = *m.weight;
  if (tensor::IsPlainFloat(e.dtype)) {
    if (e.dtype == DType::kF64) return Wrong(e, "F32, BF16, F16, FP8 or packed FP4");
    HB_RETURN_IF_ERROR(CheckWeightShape(m, 1));
    return Format::Plain(e.dtype);
  }
  if (e.dtype == DType::kF8E4M3 || e.dtype == DType::kF8E5M2) return DetectFp8(m, options);
  if (e.dtype == DType::kU8 || e.dtype == DType::kI8) return DetectFp4(m);  // DeepSeek-V4 calls its packed codes I8
  return Wrong(e, "F32, BF16, F16, FP8 or packed FP4");
}

}  // namespace halfbyte::quant
