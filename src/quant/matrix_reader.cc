#include "quant/matrix_reader.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "numerics/bf16.h"
#include "numerics/e8m0.h"
#include "numerics/fp16.h"
#include "numerics/fp8_dequantizer.h"

namespace halfbyte::quant {
namespace {

using tensor::DType;
using tensor::Outer;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Rows of this matrix inside its expert's slice start here: 0, or the up half of [gate; up].
int64_t FirstRow(const SourceMatrix& m) { return m.half == 1 ? m.rows : 0; }
int64_t SliceRows(const SourceMatrix& m) { return m.half >= 0 ? 2 * m.rows : m.rows; }

bool IsTransposed(const SourceMatrix& m) { return m.layout == StackedLayout::kTransposed || m.layout == StackedLayout::kTransposedInterleaved; }
bool IsInterleaved(const SourceMatrix& m) { return m.layout == StackedLayout::kInterleavedRows || m.layout == StackedLayout::kTransposedInterleaved; }

// A matrix inside its expert's slice: elements, packed bytes (two columns are one item), or block scales.
struct Half {
  int64_t rows = 0, cols = 0;  // of the matrix, in items
  int64_t all = 0;             // rows of the slice
  int64_t item = 1;            // bytes
  int8_t half = -1;
};

// Copies one half of a slice that alternates or is transposed into row-major [rows, cols].
void ExtractHalf(const Half& h, bool interleaved, bool transposed, const std::byte* slice, std::byte* out) {
  auto source_row = [&](int64_t r) { return h.half < 0 ? r : interleaved ? 2 * r + h.half : r + (h.half == 1 ? h.rows : 0); };
  if (!transposed) {
    for (int64_t r = 0; r < h.rows; ++r) std::memcpy(out + r * h.cols * h.item, slice + source_row(r) * h.cols * h.item, static_cast<size_t>(h.cols * h.item));
    return;
  }
  for (int64_t r = 0; r < h.rows; ++r) {
    const int64_t s = source_row(r);
    for (int64_t c = 0; c < h.cols; ++c) std::memcpy(out + (r * h.cols + c) * h.item, slice + (c * h.all + s) * h.item, static_cast<size_t>(h.item));
  }
}

// Scales and vectors of any float type in files.
base::Status ToFloats(const TensorEntry& entry, const std::vector<std::byte>& raw, std::vector<float>& out) {
  const size_t item = static_cast<size_t>(tensor::DTypeBits(entry.dtype) / 8);
  out.resize(raw.size() / item);
  auto convert = [&](auto type, auto to_float) {
    using T = decltype(type);
    for (size_t i = 0; i < out.size(); ++i) {
      T v;
      std::memcpy(&v, raw.data() + i * item, sizeof v);
      out[i] = to_float(v);
    }
  };
  switch (entry.dtype) {
    case DType::kF32: convert(float{}, [](float v) { return v; }); break;
    case DType::kF64: convert(double{}, [](double v) { return static_cast<float>(v); }); break;
    case DType::kBF16: convert(uint16_t{}, [](uint16_t v) { return numerics::Bf16ToFloat(v); }); break;
    case DType::kF16: convert(uint16_t{}, [](uint16_t v) { return numerics::Fp16ToFloat(v); }); break;
    case DType::kF8E8M0: case DType::kU8: convert(uint8_t{}, [](uint8_t v) { return numerics::E8m0ToFloat(v); }); break;
    default: return base::Fail(base::ErrorCode::kUnsupported, "tensor ", entry.name, ": scales of dtype ", DTypeName(entry.dtype));
  }
  for (float v : out)
    if (!std::isfinite(v)) return base::Fail(base::ErrorCode::kBadFile, "tensor ", entry.name, ": a value is NaN or infinite");
  return {};
}

}  // namespace

bool MatrixReader::CanReadRows(const SourceMatrix& m) {
  return m.layout == StackedLayout::kPerExpert || m.layout == StackedLayout::kRows;
}

base::Status MatrixReader::ReadFloats(const TensorEntry& entry, int64_t first, int64_t count, std::vector<float>& out) const {
  const int64_t item = tensor::DTypeBits(entry.dtype) / 8;
  std::vector<std::byte> raw(static_cast<size_t>(count * item));
  HB_RETURN_IF_ERROR(files_.ReadRange(entry, static_cast<uint64_t>(first * item), raw));
  return ToFloats(entry, raw, out);
}

base::Result<float> MatrixReader::ReadScalar(const TensorEntry& entry, const SourceMatrix& m) const {
  const int64_t n = entry.shape.elements();
  int64_t index = 0;
  if (n < 1) return base::Fail(base::ErrorCode::kBadFile, "tensor ", entry.name, ": shape ", entry.shape.ToString(), ", one value is wanted");
  if (n > 1) {
    // [E] or [E, 1]: one an expert; [E, 2]: gate and up apart.
    const int64_t columns = n / entry.shape[0];
    index = m.stack_index * columns + (columns == 2 && m.half == 1 ? 1 : 0);
    if (m.layout == StackedLayout::kPerExpert || entry.shape[0] != m.weight->shape[0] || columns > (m.half >= 0 ? 2 : 1))
      return base::Fail(base::ErrorCode::kBadFile, "tensor ", entry.name, ": shape ", entry.shape.ToString(), ", one value is wanted");
  }
  std::vector<float> value;
  HB_RETURN_IF_ERROR(ReadFloats(entry, index, 1, value));
  return value[0];
}

base::Status MatrixReader::ReadElements(const SourceMatrix& m, int64_t row_begin, int64_t rows, MatrixBuffer& buffer, SliceBuffer& slice) const {
  const bool packed = m.format.elem == DType::kF4;
  const int64_t row_bytes = packed ? m.cols / 2 : m.cols * tensor::DTypeBits(m.format.elem) / 8;
  buffer.elements.resize(static_cast<size_t>(rows * row_bytes));
  if (CanReadRows(m)) {
    const int64_t offset = (m.stack_index * SliceRows(m) + FirstRow(m) + row_begin) * row_bytes;
    return files_.ReadRange(*m.weight, static_cast<uint64_t>(offset), buffer.elements);
  }
  const int64_t slice_bytes = SliceRows(m) * row_bytes;
  if (slice.entry != m.weight || slice.index != m.stack_index) {
    slice.bytes.resize(static_cast<size_t>(slice_bytes));
    slice.entry = nullptr;
    HB_RETURN_IF_ERROR(files_.ReadRange(*m.weight, static_cast<uint64_t>(m.stack_index * slice_bytes), slice.bytes));
    slice.entry = m.weight;
    slice.index = m.stack_index;
  }
  // A byte of packed codes holds two columns, also where the tensor is stored [in / 2, out].
  const int64_t item = packed ? 1 : tensor::DTypeBits(m.format.elem) / 8;
  ExtractHalf({m.rows, packed ? m.cols / 2 : m.cols, SliceRows(m), item, m.half}, IsInterleaved(m), IsTransposed(m), slice.bytes.data(), buffer.elements.data());
  return {};
}

base::Status MatrixReader::ReadScaleBytes(const SourceMatrix& m, int64_t block_rows, int64_t block_cols, int64_t first, int64_t count, std::vector<std::byte>& out) const {
  const int64_t item = tensor::DTypeBits(m.scale->dtype) / 8, cols = CeilDiv(m.cols, block_cols), slice_rows = CeilDiv(SliceRows(m), block_rows);
  if (m.half >= 0 && (IsInterleaved(m) ? block_rows != 1 : m.rows % block_rows != 0))
    return base::Fail(base::ErrorCode::kUnsupported, "tensor ", m.scale->name, ": a block of ", block_rows, " rows spans gate and up");
  out.resize(static_cast<size_t>(count * cols * item));
  if (CanReadRows(m))
    return files_.ReadRange(*m.scale, static_cast<uint64_t>((m.stack_index * slice_rows + FirstRow(m) / block_rows + first) * cols * item), out);
  std::vector<std::byte> slice(static_cast<size_t>(slice_rows * cols * item));  // such matrices are read whole: first is 0
  HB_RETURN_IF_ERROR(files_.ReadRange(*m.scale, static_cast<uint64_t>(m.stack_index * slice_rows * cols * item), slice));
  ExtractHalf({count, cols, slice_rows, item, m.half}, IsInterleaved(m), IsTransposed(m), slice.data(), out.data());
  return {};
}

base::Status MatrixReader::ReadPackedUe8m0(const SourceMatrix& m, int64_t first_row, int64_t rows, std::vector<float>& out) const {
  const int64_t blocks = CeilDiv(m.cols, 128), words = CeilDiv(blocks, 4), slice_rows = SliceRows(m);
  const int64_t stored = m.scale->shape[m.scale->shape.rank() - 2];  // rows of words of a slice
  if (m.half >= 0 && (m.rows % 128 != 0 || IsInterleaved(m)))
    return base::Fail(base::ErrorCode::kUnsupported, "tensor ", m.scale->name, ": a block of 128 rows spans gate and up");
  const bool repeated = stored == slice_rows;                        // every row of W has its own copy
  const int64_t first = repeated ? first_row : first_row / 128, count = repeated ? rows : CeilDiv(rows, 128);
  std::vector<uint32_t> raw(static_cast<size_t>(count * words));
  HB_RETURN_IF_ERROR(files_.ReadRange(*m.scale, static_cast<uint64_t>((m.stack_index * stored + first) * words * 4), std::as_writable_bytes(std::span(raw))));
  out.clear();
  std::vector<float> row(static_cast<size_t>(words * 4));
  for (int64_t r = 0; r < count; r += repeated ? 128 : 1) {
    const std::span<const uint32_t> own(raw.data() + r * words, static_cast<size_t>(words));
    for (int64_t copy = r + 1; repeated && copy < std::min(r + 128, count); ++copy)
      if (!std::equal(own.begin(), own.end(), raw.data() + copy * words))
        return base::Fail(base::ErrorCode::kBadFile, "tensor ", m.scale->name, ": row ", first + copy, " differs from row ", first + r, "; the 128 rows of a block must have equal scales");
    numerics::UnpackUe8m0(own, row.data());
    out.insert(out.end(), row.begin(), row.begin() + blocks);
  }
  for (float v : out)
    if (!std::isfinite(v)) return base::Fail(base::ErrorCode::kBadFile, "tensor ", m.scale->name, ": a value is NaN");
  return {};
}

base::Status MatrixReader::ReadOuter(const SourceMatrix& m, MatrixBuffer& buffer) const {
  HB_ASSIGN_OR_RETURN(float outer, ReadScalar(*m.outer, m));
  if (m.outer_is_divisor) outer = 1.0f / outer;
  if (!std::isfinite(outer)) return base::Fail(base::ErrorCode::kBadFile, "tensor ", m.outer->name, ": a global scale of zero");
  buffer.outer = outer;
  return {};
}

base::Status MatrixReader::ReadPreScale(const SourceMatrix& m, std::vector<float>& out) const {
  const bool own = m.layout != StackedLayout::kPerExpert && m.pre_scale->shape.elements() != m.cols;  // [E, in], else one for all experts
  return ReadFloats(*m.pre_scale, own ? m.stack_index * m.cols : 0, m.cols, out);
}

base::Status MatrixReader::ReadScales(const SourceMatrix& m, int64_t row_begin, int64_t rows, MatrixBuffer& buffer) const {
  const Format& f = m.format;
  if (f.is_plain()) return {};
  if (f.outer == Outer::kPerTensor && f.is_fp8()) {
    HB_ASSIGN_OR_RETURN(float scale, ReadScalar(*m.scale, m));
    buffer.scales.assign(1, scale);
    return {};
  }
  if (f.outer == Outer::kPerRow) {
    HB_RETURN_IF_ERROR(ReadScaleBytes(m, 1, m.cols, row_begin, rows, buffer.block_scales));
    return ToFloats(*m.scale, buffer.block_scales, buffer.scales);
  }
  if (m.scale->dtype == DType::kI32) return ReadPackedUe8m0(m, FirstRow(m) + row_begin, rows, buffer.scales);
  HB_RETURN_IF_ERROR(ReadScaleBytes(m, f.block_rows, f.block_cols, row_begin / f.block_rows, CeilDiv(rows, f.block_rows), buffer.block_scales));
  if (f.is_fp8()) return ToFloats(*m.scale, buffer.block_scales, buffer.scales);
  const auto nan = std::count_if(buffer.block_scales.begin(), buffer.block_scales.end(), [&](std::byte b) {
    // No producer writes a negative scale, and the kernels' decoding has no sign.
    return f.is_nvfp4() ? static_cast<uint8_t>(b) >= 0x7F : b == std::byte{0xFF};
  });
  if (nan) return base::Fail(base::Error(base::ErrorCode::kBadFile, base::StrCat("tensor ", m.scale->name, ": ", nan, f.is_nvfp4() ? " block scales are NaN or negative" : " block scales are NaN"))
                                 .Hint("the file was written by a converter that overflowed; convert the model again"));
  return f.is_nvfp4() ? ReadOuter(m, buffer) : base::Status();
}

base::Result<tensor::QuantizedMatrix> MatrixReader::Read(const SourceMatrix& m, int64_t row_begin, int64_t rows, MatrixBuffer& buffer, SliceBuffer& slice) const {
  HB_RETURN_IF_ERROR(ReadElements(m, row_begin, rows, buffer, slice));
  HB_RETURN_IF_ERROR(ReadScales(m, row_begin, rows, buffer));
  tensor::QuantizedMatrix q{m.format, rows, m.cols, buffer.elements.data(), nullptr, nullptr};
  if (m.format.is_fp8()) {
    if (m.format.block_scale) q.block_scales = buffer.scales.data();
    else q.outer = buffer.scales.data();
  } else if (m.format.elem == DType::kF4) {
    q.block_scales = buffer.block_scales.data();
    if (m.format.is_nvfp4()) q.outer = &buffer.outer;
  }
  return q;
}

}  // namespace halfbyte::quant
