// Reads rows of a logical matrix out of the checkpoint's tensors, whatever their layout, into canonical row-major form.
#pragma once

#include <vector>

#include "quant/source.h"
#include "tensor/matrix.h"

namespace halfbyte::quant {

// Memory for one matrix (or some rows of one), reused from matrix to matrix: a worker's peak is its largest.
struct MatrixBuffer {
  std::vector<std::byte> elements;
  std::vector<std::byte> block_scales;  // raw E4M3 / E8M0 bytes (FP4)
  std::vector<float> scales;            // block or row or tensor scales as FP32 (FP8)
  float outer = 1.0f;                   // FP32 scale (NVFP4)
};

// One expert's slice of a stacked tensor that has to be taken apart (transposed or interleaved): read once, used for gate and up.
struct SliceBuffer {
  const TensorEntry* entry = nullptr;
  int64_t index = -1;
  std::vector<std::byte> bytes;
};

class MatrixReader {
 public:
  explicit MatrixReader(const checkpoint::Checkpoint& files) : files_(files) {}

  // Whether a matrix can be read in row chunks; the others are read whole (row_begin 0, all rows).
  static bool CanReadRows(const SourceMatrix& m);

  // Rows [row_begin, row_begin + rows) in m.format, pointing into `buffer`. row_begin must be a multiple of the format's block rows.
  // NaN among the scales, and non-finite FP32 scales, are errors that name the tensor.
  base::Result<tensor::QuantizedMatrix> Read(const SourceMatrix& m, int64_t row_begin, int64_t rows, MatrixBuffer& buffer, SliceBuffer& slice) const;

  // The AWQ factors of a matrix's columns, F32 [cols].
  base::Status ReadPreScale(const SourceMatrix& m, std::vector<float>& out) const;

  // Elements [first, first + count) of a tensor of F32, BF16, F16, F8_E8M0 or U8 (E8M0) as FP32.
  base::Status ReadFloats(const TensorEntry& entry, int64_t first, int64_t count, std::vector<float>& out) const;
  // The value of a per-tensor companion (shapes [], [1], [E], [E, 1], [E, 2]) for this matrix.
  base::Result<float> ReadScalar(const TensorEntry& entry, const SourceMatrix& m) const;

 private:
  base::Status ReadElements(const SourceMatrix& m, int64_t row_begin, int64_t rows, MatrixBuffer& buffer, SliceBuffer& slice) const;
  base::Status ReadScales(const SourceMatrix& m, int64_t row_begin, int64_t rows, MatrixBuffer& buffer) const;
  base::Status ReadOuter(const SourceMatrix& m, MatrixBuffer& buffer) const;
  base::Status ReadPackedUe8m0(const SourceMatrix& m, int64_t first_row, int64_t rows, std::vector<float>& out) const;
  // Scales of blocks of block_rows x block_cols, block rows [first, first + count) of the matrix, as bytes in row-major order whatever the layout.
  base::Status ReadScaleBytes(const SourceMatrix& m, int64_t block_rows, int64_t block_cols, int64_t first, int64_t count, std::vector<std::byte>& out) const;

  const checkpoint::Checkpoint& files_;
};

}  // namespace halfbyte::quant
