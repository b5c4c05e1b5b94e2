// Rows and arrays in a backend's memory, with marks behind every row that no kernel may touch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/api/backend.h"

namespace halfbyte::test {

class DeviceMatrix {
 public:
  // Zeroed rows x cols of F32 or BF16; `pad` elements lie between two rows (and after the last one).
  DeviceMatrix(kernels::Backend& backend, tensor::DType dtype, int64_t rows, int64_t cols, int64_t pad = 0);
  // F32 [rows, cols], rounded where dtype is BF16.
  DeviceMatrix(kernels::Backend& backend, tensor::DType dtype, int64_t rows, int64_t cols, std::span<const float> values, int64_t pad = 0);

  tensor::MutableMatrix view() { return {buffer_.data(), dtype_, rows_, cols_, cols_ + pad_}; }
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  void Set(std::span<const float> values);
  // Values F32 [rows, cols] read back. Adds a test failure where a kernel wrote between the rows.
  std::vector<float> Read();

 private:
  size_t element() const { return static_cast<size_t>(tensor::DTypeBits(dtype_) / 8); }

  kernels::Backend& backend_;
  tensor::DType dtype_;
  int64_t rows_, cols_, pad_;
  tensor::Buffer buffer_;
};

template <typename T>
class DeviceArray {
 public:
  DeviceArray(kernels::Backend& backend, std::span<const T> values) : backend_(backend), count_(values.size()) {
    buffer_ = std::move(*backend.Allocate(std::max<size_t>(1, count_ * sizeof(T))));
    if (count_ > 0) HB_CHECK(backend.Upload(buffer_.data(), values.data(), count_ * sizeof(T)).has_value());
  }
  DeviceArray(kernels::Backend& backend, const std::vector<T>& values) : DeviceArray(backend, std::span<const T>(values)) {}
  T* data() { return buffer_.template as<T>(); }
  std::span<T> span() { return {data(), count_}; }
  std::vector<T> Read() {
    std::vector<T> out(count_);
    HB_CHECK(backend_.Synchronize().has_value());
    if (count_ > 0) HB_CHECK(backend_.Download(out.data(), buffer_.data(), count_ * sizeof(T)).has_value());
    return out;
  }

 private:
  kernels::Backend& backend_;
  size_t count_;
  tensor::Buffer buffer_;
};

}  // namespace halfbyte::test
