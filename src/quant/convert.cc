#include "quant/convert.h"

#include <cmath>
#include <cstring>

#include "numerics/bf16.h"
#include "numerics/e4m3.h"
#include "numerics/fp16.h"
#include "numerics/mxfp4_cast.h"
#include "numerics/nvfp4_block.h"

namespace halfbyte::quant {
namespace {

using tensor::DType;

float PlainAt(const void* data, DType dtype, int64_t i) {
  switch (dtype) {
    case DType::kF32: return static_cast<const float*>(data)[i];
    case DType::kBF16: return numerics::Bf16ToFloat(static_cast<const uint16_t*>(data)[i]);
    case DType::kF16: return numerics::Fp16ToFloat(static_cast<const uint16_t*>(data)[i]);
    default: HB_CHECK(false, "not a plain type: ", DTypeName(dtype)); return 0;
  }
}

// Rows of an FP8 or FP4 matrix as FP32; a strip at a time so that the temporary stays in cache.
void DecodeRows(const tensor::QuantizedMatrix& m, int64_t begin, int64_t count, float* out) {
  const auto* bytes = static_cast<const uint8_t*>(m.elements);
  if (m.format.is_fp8()) {
    numerics::DequantizeFp8(bytes, m.format.elem, m.cols, ScalesOf(m), begin, count, out);
    return;
  }
  bytes += begin * m.cols / 2;
  const auto* scales = static_cast<const uint8_t*>(m.block_scales) + begin * (m.cols / m.format.block_cols);
  if (m.format.is_nvfp4()) numerics::DecodeMatrix(bytes, scales, *m.outer, count, m.cols, out);
  else numerics::DecodeMxfp4(bytes, scales, count, m.cols, out);
}

}  // namespace

numerics::Fp8Scales ScalesOf(const tensor::QuantizedMatrix& m) {
  if (m.format.block_scale)
    return numerics::Fp8PerBlock(static_cast<const float*>(m.block_scales), m.cols, m.format.block_rows, m.format.block_cols);
  return m.format.outer == tensor::Outer::kPerRow ? numerics::Fp8PerRow(m.outer, m.cols) : numerics::Fp8PerTensor(m.outer, m.rows, m.cols);
}

int64_t ToPlain(const tensor::QuantizedMatrix& m, DType to, void* out, const float* column_factors) {
  HB_CHECK((to == DType::kBF16 || to == DType::kF32) && !(column_factors && m.format.is_plain()));
  const int64_t n = m.rows * m.cols;
  int64_t changed = 0;
  auto store = [&](int64_t i, float v) {
    if (to == DType::kF32) { static_cast<float*>(out)[i] = v; return; }
    static_cast<uint16_t*>(out)[i] = numerics::FloatToBf16(v);
  };
  if (m.format.is_plain()) {
    for (int64_t i = 0; i < n; ++i) {
      float v = PlainAt(m.elements, m.format.elem, i);
      store(i, v);
      if (to == DType::kBF16) changed += numerics::Bf16ToFloat(static_cast<uint16_t*>(out)[i]) != v;
    }
    return changed;
  }
  std::vector<float> strip(static_cast<size_t>(m.cols));
  for (int64_t r = 0; r < m.rows; ++r) {
    DecodeRows(m, r, 1, strip.data());
    for (int64_t c = 0; column_factors && c < m.cols; ++c) strip[static_cast<size_t>(c)] *= column_factors[c];
    for (int64_t c = 0; c < m.cols; ++c) store(r * m.cols + c, strip[static_cast<size_t>(c)]);
  }
  return 0;
}

int64_t CountNonfinite(const tensor::QuantizedMatrix& m) {
  const int64_t n = m.rows * m.cols;
  int64_t count = 0;
  if (m.format.elem == DType::kBF16) {
    const auto* p = static_cast<const uint16_t*>(m.elements);
    for (int64_t i = 0; i < n; ++i) count += (p[i] & 0x7F80) == 0x7F80;
  } else if (m.format.elem == DType::kF16) {
    const auto* p = static_cast<const uint16_t*>(m.elements);
    for (int64_t i = 0; i < n; ++i) count += (p[i] & 0x7C00) == 0x7C00;
  } else if (m.format.elem == DType::kF32) {
    const auto* p = static_cast<const uint32_t*>(m.elements);
    for (int64_t i = 0; i < n; ++i) count += (p[i] & 0x7F800000u) == 0x7F800000u;
  } else if (m.format.elem == DType::kF8E4M3) {
    const auto* p = static_cast<const uint8_t*>(m.elements);
    for (int64_t i = 0; i < n; ++i) count += (p[i] & 0x7F) == 0x7F;
  } else if (m.format.elem == DType::kF8E5M2) {
    const auto* p = static_cast<const uint8_t*>(m.elements);
    for (int64_t i = 0; i < n; ++i) count += (p[i] & 0x7C) == 0x7C;
  }
  return count;
}

void QuantizeRowsFp8(const tensor::Matrix& m, uint8_t* codes, float* scales) {
  for (int64_t r = 0; r < m.rows; ++r) {
    const void* row = m.row<char>(0) + r * m.ld * tensor::DTypeBits(m.dtype) / 8;
    float amax = 0;
    for (int64_t c = 0; c < m.cols; ++c) amax = std::max(amax, std::fabs(PlainAt(row, m.dtype, c)));
    const float share = amax / numerics::kE4m3Max, scale = share > 0 ? share : 1.0f;  // an amax of FP32 subnormals may vanish in the division
    scales[r] = scale;
    for (int64_t c = 0; c < m.cols; ++c) codes[r * m.cols + c] = numerics::FloatToE4m3(PlainAt(row, m.dtype, c) / scale);
  }
}

}  // namespace halfbyte::quant
