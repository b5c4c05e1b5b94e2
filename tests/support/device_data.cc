#include "support/device_data.h"

#include <cstring>
#include <gtest/gtest.h>

#include "support/weight_data.h"

namespace halfbyte::test {
namespace {
constexpr uint8_t kMark = 0x5A;
}

using tensor::DType;

DeviceMatrix::DeviceMatrix(kernels::Backend& backend, DType dtype, int64_t rows, int64_t cols, int64_t pad)
    : DeviceMatrix(backend, dtype, rows, cols, std::vector<float>(static_cast<size_t>(rows * cols)), pad) {}

DeviceMatrix::DeviceMatrix(kernels::Backend& backend, DType dtype, int64_t rows, int64_t cols, std::span<const float> values, int64_t pad)
    : backend_(backend), dtype_(dtype), rows_(rows), cols_(cols), pad_(pad) {
  HB_CHECK(dtype == DType::kF32 || dtype == DType::kBF16);
  buffer_ = std::move(*backend.Allocate(static_cast<size_t>(rows * (cols + pad)) * element() + 64));
  Set(values);
}

void DeviceMatrix::Set(std::span<const float> values) {
  HB_CHECK(static_cast<int64_t>(values.size()) == rows_ * cols_);
  std::vector<uint8_t> bytes(buffer_.bytes(), kMark);
  for (int64_t i = 0; i < rows_ * cols_; ++i) {
    uint8_t* to = bytes.data() + static_cast<size_t>(i / cols_ * (cols_ + pad_) + i % cols_) * element();
    const float value = dtype_ == DType::kBF16 ? RoundBf16(values[static_cast<size_t>(i)]) : values[static_cast<size_t>(i)];
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    if (dtype_ == DType::kBF16) bits >>= 16;
    std::memcpy(to, &bits, element());
  }
  HB_CHECK(backend_.Upload(buffer_.data(), bytes.data(), bytes.size()).has_value());
}

std::vector<float> DeviceMatrix::Read() {
  HB_CHECK(backend_.Synchronize().has_value());
  std::vector<uint8_t> bytes(buffer_.bytes());
  HB_CHECK(backend_.Download(bytes.data(), buffer_.data(), bytes.size()).has_value());
  std::vector<float> out(static_cast<size_t>(rows_ * cols_));
  size_t touched = 0;
  for (size_t at = 0; at < bytes.size() / element(); ++at) {
    const auto row = static_cast<int64_t>(at) / (cols_ + pad_), col = static_cast<int64_t>(at) % (cols_ + pad_);
    const uint8_t* from = bytes.data() + at * element();
    if (row < rows_ && col < cols_) {
      uint32_t bits = 0;
      std::memcpy(&bits, from, element());
      if (dtype_ == DType::kBF16) bits <<= 16;
      std::memcpy(&out[static_cast<size_t>(row * cols_ + col)], &bits, 4);
    } else {
      for (size_t i = 0; i < element(); ++i) touched += from[i] != kMark;
    }
  }
  EXPECT_EQ(touched, 0u) << "bytes between or behind rows were overwritten";
  return out;
}

}  // namespace halfbyte::test
