// Made-up operands for bench --kernels: values as in a trained model's range, the same for the same seed.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/matrix.h"

namespace halfbyte::app {

// Copies of a weight together exceed any cache that a guest has to itself.
inline constexpr int64_t kColdBytes = int64_t{1} << 30;

// A weight matrix of any format that the kernels read, values of about 0.02.
class RandomMatrix {
 public:
  RandomMatrix(const tensor::Format& format, int64_t rows, int64_t cols, uint32_t seed);
  tensor::QuantizedMatrix view() const { return {format_, rows_, cols_, elements_.data(), scales_.data(), &outer_}; }

 private:
  tensor::Format format_;
  int64_t rows_, cols_;
  std::vector<uint8_t> elements_, scales_;
  float outer_ = 0.0005f;
};

// Rows of x, normally distributed, in BF16 or F32 (the BF16 values).
class RandomRows {
 public:
  RandomRows(int64_t rows, int64_t cols, tensor::DType dtype, uint32_t seed);
  int64_t cols() const { return cols_; }
  // The first `rows`.
  tensor::Matrix Matrix(int64_t rows) const;

 private:
  int64_t cols_;
  tensor::DType dtype_;
  std::vector<float> f32_;
  std::vector<uint16_t> bf16_;
};

}  // namespace halfbyte::app
