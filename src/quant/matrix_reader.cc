#include "quant/matrix_reader.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "numerics/bf16.h"
#include "numerics/e8m0.h"
#include "numerics/fp16.h"

namespace halfbyte::quant {
namespace {

using tensor::DType;
using tensor::Outer;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Rows of this matrix inside its expert's slice start here: 0, or the up half of [gate; up].
int64_t FirstRow(const SourceMatrix& m) { return m.half == 1 ? m.rows : 0; }
int64_t SliceRows(const SourceMatrix& m) { return m.half >= 0 ? 2 * m.rows : m.rows; }

// Copies one half of a slice that alternates or is transposed into row-major [rows, cols]; item = bytes of one element.
// For packed FP4 two columns are one item, so transposed layouts (pairs along the other axis) do not come here.
void ExtractHalf(const SourceMatrix& m, const std::byte* slice, int64_t item, std::byte* out) {
  const int64_t rows = m.rows, cols = m.cols, all = SliceRows(m);
  const bool interleaved = m.layout == StackedLayout::kInterleavedRows || m.layout == StackedLayout::kTransposedInterleaved;
  const bool split = m.half >= 0;
  auto source_row = [&](int64_t r) { return !split ? r : interleaved ? 2 * r + m.half : r + FirstRow(m); };
  if (m.layout == StackedLayout::kInterleavedRows) {
    for (int64_t r = 0; r < rows; ++r) std::memcpy(out + r * cols * item, slice + source_row(r) * cols * item, static_cast<size_t>(cols * item));
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t s = source_row(r);
    for (int64_t c = 0; c < cols; ++c) std::memcpy(out + (r * cols + c) * item, slice + (c * all + s) * item, static_cast<size_t>(item));
  }
}

}  // namespace

bool MatrixReader::CanReadRows(const SourceMatrix& m) {
  return m.layout == StackedLayout::kPerExpert || m.layout == StackedLayout::kRows;
}

base::Status MatrixReader::ReadFloats(const TensorEntry& entry, int64_t first, int64_t count, std::vector<float>& out) const {
  const int64_t item = tensor::DTypeBits(entry.dtype) / 8;
  std::vector<std::byte> raw(static_cast<size_t>(count * item));
  HB_RETURN_IF_ERROR(files_.ReadRange(entry, static_cast<uint64_t>(first * item), raw));
  out.resize(static_cast<size_t>(count));
  auto convert = [&](auto type, auto to_float) {
    using T = decltype(type);
    for (int64_t i = 0; i < count; ++i) {
      T v;
      std::memcpy(&v, raw.data() + i * item, sizeof v);
      out[static_cast<size_t>(i)] = to_float(v);
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
  if (packed && m.layout != StackedLayout::kInterleavedRows)
    return base::Fail(base::ErrorCode::kUnsupported, "tensor ", m.weight->name, ": packed 4-bit experts stored [experts, in, out] are not read yet");
  const int64_t slice_bytes = SliceRows(m) * row_bytes;
  if (slice.entry != m.weight || slice.index != m.stack_index) {
    slice.bytes.resize(static_cast<size_t>(slice_bytes));
    slice.entry = nullptr;
    HB_RETURN_IF_ERROR(files_.ReadRange(*m.weight, static_cast<uint64_t>(m.stack_index * slice_bytes), slice.bytes));
    slice.entry = m.weight;
    slice.index = m.stack_index;
  }
  if (packed) {
    SourceMatrix halves = m;  // two columns are one byte here
    halves.cols = m.cols / 2;
    ExtractHalf(halves, slice.bytes.data(), 1, buffer.elements.data());
  } else {
    ExtractHalf(m, slice.bytes.data(), tensor::DTypeBits(m.format.elem) / 8, buffer.elements.data());
  }
  return {};
}

base::Status MatrixReader::ReadScales(const SourceMatrix& m, int64_t row_begin, int64_t rows, MatrixBuffer& buffer) const {
  const Format& f = m.format;
  if (f.is_plain()) return {};
  if (f.outer == Outer::kPerTensor && f.is_fp8()) {
    HB_ASSIGN_OR_RETURN(float scale, ReadScalar(*m.scale, m));
    buffer.scales.assign(1, scale);
    return {};
  }
  const int64_t first = FirstRow(m) + row_begin;
  if (f.outer == Outer::kPerRow) return ReadFloats(*m.scale, m.stack_index * SliceRows(m) + first, rows, buffer.scales);
  if (m.layout != StackedLayout::kPerExpert && m.layout != StackedLayout::kRows)
    return base::Fail(base::ErrorCode::kUnsupported, "tensor ", m.weight->name, ": block scales of experts stored [experts, in, out] or interleaved are not read yet");
  if (first % f.block_rows != 0)
    return base::Fail(base::ErrorCode::kUnsupported, "tensor ", m.scale->name, ": a block of ", f.block_rows, " rows spans gate and up");
  const int64_t scale_cols = CeilDiv(m.cols, f.block_cols), slice_scale_rows = CeilDiv(SliceRows(m), f.block_rows);
  const int64_t scale_first = (m.stack_index * slice_scale_rows + first / f.block_rows) * scale_cols;
  const int64_t count = CeilDiv(rows, f.block_rows) * scale_cols;
  if (f.is_fp8()) return ReadFloats(*m.scale, scale_first, count, buffer.scales);
  buffer.block_scales.resize(static_cast<size_t>(count));
  HB_RETURN_IF_ERROR(files_.ReadRange(*m.scale, static_cast<uint64_t>(scale_first), buffer.block_scales));
  const auto nan = std::count_if(buffer.block_scales.begin(), buffer.block_scales.end(), [&](std::byte b) {
    // No producer writes a negative scale, and the kernels' decoding has no sign.
    return f.is_nvfp4() ? static_cast<uint8_t>(b) >= 0x7F : b == std::byte{0xFF};
  });
  if (nan) return base::Fail(base::Error(base::ErrorCode::kBadFile, base::StrCat("tensor ", m.scale->name, ": ", nan, f.is_nvfp4() ? " block scales are NaN or negative" : " block scales are NaN"))
                                 .Hint("the file was written by a converter that overflowed; convert the model again"));
  if (f.is_nvfp4()) {
    HB_ASSIGN_OR_RETURN(float outer, ReadScalar(*m.outer, m));
    if (m.outer_is_divisor) outer = 1.0f / outer;
    if (!std::isfinite(outer)) return base::Fail(base::ErrorCode::kBadFile, "tensor ", m.outer->name, ": a global scale of zero");
    buffer.outer = outer;
  }
  return {};
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
