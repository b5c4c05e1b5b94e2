// Views of row-major matrices. A view never owns; ld is the distance of two rows in elements.
#pragma once

#include <cstdint>

#include "base/check.h"
#include "tensor/dtype.h"
#include "tensor/format.h"

namespace halfbyte::tensor {

struct Matrix {
  const void* data = nullptr;
  DType dtype = DType::kF32;
  int64_t rows = 0, cols = 0, ld = 0;

  Matrix() = default;
  Matrix(const void* d, DType t, int64_t r, int64_t c) : data(d), dtype(t), rows(r), cols(c), ld(c) {}
  Matrix(const void* d, DType t, int64_t r, int64_t c, int64_t l) : data(d), dtype(t), rows(r), cols(c), ld(l) {}
  template <typename T> const T* row(int64_t r) const { return static_cast<const T*>(data) + r * ld; }
  // Rows [begin, end).
  Matrix Rows(int64_t begin, int64_t end) const {
    HB_CHECK(0 <= begin && begin <= end && end <= rows);
    return {static_cast<const char*>(data) + begin * ld * DTypeBits(dtype) / 8, dtype, end - begin, cols, ld};
  }
};

struct MutableMatrix {
  void* data = nullptr;
  DType dtype = DType::kF32;
  int64_t rows = 0, cols = 0, ld = 0;

  MutableMatrix() = default;
  MutableMatrix(void* d, DType t, int64_t r, int64_t c) : data(d), dtype(t), rows(r), cols(c), ld(c) {}
  MutableMatrix(void* d, DType t, int64_t r, int64_t c, int64_t l) : data(d), dtype(t), rows(r), cols(c), ld(l) {}
  template <typename T> T* row(int64_t r) const { return static_cast<T*>(data) + r * ld; }
  MutableMatrix Rows(int64_t begin, int64_t end) const {
    HB_CHECK(0 <= begin && begin <= end && end <= rows);
    return {static_cast<char*>(data) + begin * ld * DTypeBits(dtype) / 8, dtype, end - begin, cols, ld};
  }
  operator Matrix() const { return {data, dtype, rows, cols, ld}; }
};

// A weight matrix in the canonical (on-disk) layout with its scales; what the load pipeline hands to a backend for packing.
struct QuantizedMatrix {
  Format format;
  int64_t rows = 0, cols = 0;
  // Elements, row-major, dense; for kF4 two a byte, low nibble = even column.
  const void* elements = nullptr;
  // [ceil(rows/block_rows), ceil(cols/block_cols)] row-major in format.block_scale; null where the format has none.
  const void* block_scales = nullptr;
  // Outer scale(s): one float (per tensor) or `rows` floats (per row); null where the format has none.
  const float* outer = nullptr;
};

}  // namespace halfbyte::tensor
