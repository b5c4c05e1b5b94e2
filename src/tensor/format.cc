#include "tensor/format.h"

#include "base/result.h"

namespace halfbyte::tensor {

std::string Format::ToString() const {
  std::string out;
  if (is_nvfp4()) out = base::StrCat("NVFP4 ", block_rows, "x", block_cols);
  else if (elem == DType::kF4) out = base::StrCat("MXFP4 ", block_rows, "x", block_cols);
  else if (elem == DType::kI8) out = base::StrCat("INT8 ", block_rows, "x", block_cols);
  else if (is_fp8()) {
    out = elem == DType::kF8E4M3 ? "FP8" : "FP8-E5M2";
    if (block_scale) out += base::StrCat(" ", block_rows, "x", block_cols);
  } else {
    out = std::string(DTypeName(elem));
  }
  if (is_fp8() && outer == Outer::kPerTensor) out += " per tensor";
  if (outer == Outer::kPerRow) out += " per row";
  return out;
}

int64_t Format::Bytes(int64_t rows, int64_t cols) const {
  int64_t bytes = rows * (cols * DTypeBits(elem) / 8);
  if (block_scale) bytes += ((rows + block_rows - 1) / block_rows) * ((cols + block_cols - 1) / block_cols) * (DTypeBits(*block_scale) / 8);
  if (outer == Outer::kPerTensor) bytes += 4;
  if (outer == Outer::kPerRow) bytes += 4 * rows;
  return bytes;
}

}  // namespace halfbyte::tensor
