// StoredMatrix: a weight matrix kept in its canonical (on-disk) layout, decoded row by row when it is used.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "tensor/buffer.h"
#include "tensor/matrix.h"

namespace halfbyte::kernels::reference {

class StoredMatrix {
 public:
  // kUnsupported for formats that are not weights (see the list in kernels/api/weights.h; F16 and E5M2 are accepted too).
  static base::Status Supports(const tensor::Format& format);
  static base::Result<std::unique_ptr<StoredMatrix>> Create(const tensor::Format& format, int64_t n, int64_t k);

  // Copies rows [row_begin, row_begin + part.rows); disjoint ranges may be written by several threads at once.
  base::Status Pack(int64_t row_begin, const tensor::QuantizedMatrix& part);

  const tensor::Format& format() const { return format_; }
  int64_t n() const { return n_; }
  int64_t k() const { return k_; }
  int64_t bytes() const { return format_.Bytes(n_, k_); }

  void CopyFrom(const StoredMatrix& other);  // of the same format and shape
  void Drop();

  // Row n of W is out[0..k) * OuterScale(n). NVFP4: out = E2M1 * E4M3, exact; the FP32 scale multiplies the finished sum, as in every
  // kernel of the reference producers. FP8: out = fl32(fp32(fp8) * fp32(scale)), which by contract *is* the value (never BF16), and
  // OuterScale is 1. Plain: the value, and 1.
  void DecodeRow(int64_t n, double* out) const;
  double OuterScale(int64_t n) const;

 private:
  StoredMatrix() = default;
  float Outer(int64_t n) const;
  int64_t scale_cols() const;  // block scales in a row of blocks; 0 without any

  tensor::Format format_;
  int64_t n_ = 0, k_ = 0;
  tensor::Buffer elements_, block_scales_;
  // One per tensor, or one per row. Atomic because every part of a per-tensor format brings the same scale along.
  std::vector<std::atomic<float>> outer_;
};

}  // namespace halfbyte::kernels::reference
