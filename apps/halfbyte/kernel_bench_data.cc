#include "kernel_bench_data.h"

#include <cstring>
#include <random>

#include "numerics/bf16.h"

namespace halfbyte::app {
namespace {

// Uniform values are as good as normal ones for speed and for telling right from wrong, and cheap: gigabytes of them are made.
struct Lcg {
  uint64_t state;
  uint32_t operator()() {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<uint32_t>(state >> 32);
  }
  float Uniform() { return static_cast<float>(static_cast<int32_t>((*this)())) * (0.035f / 2147483648.0f); }
};

// E4M3 codes of 2^-3 to 30 and, as in real models, one subnormal in 8,000.
uint8_t Fp8Code(Lcg& random) {
  const uint32_t r = random();
  const uint32_t magnitude = (r >> 8) % 8000 == 0 ? r % 8 : 0x20 + (r >> 24) % 0x40;
  return static_cast<uint8_t>((r & 0x80) | magnitude);
}

}  // namespace

RandomMatrix::RandomMatrix(const tensor::Format& format, int64_t rows, int64_t cols, uint32_t seed) : format_(format), rows_(rows), cols_(cols) {
  Lcg random{seed * 0x9E3779B97F4A7C15ull + 1};
  const int64_t n = rows * cols;
  elements_.resize(static_cast<size_t>(n * tensor::DTypeBits(format.elem) / 8));
  if (format.is_nvfp4()) {
    for (uint8_t& e : elements_) e = static_cast<uint8_t>(random() >> 24);
    scales_.resize(static_cast<size_t>(n / 16));
    for (uint8_t& s : scales_) s = static_cast<uint8_t>(0x48 + random() % 0x10);  // 4 to 15
  } else if (format.is_fp8()) {
    for (uint8_t& e : elements_) e = Fp8Code(random);
    const int64_t scales = (rows + format.block_rows - 1) / format.block_rows * ((cols + format.block_cols - 1) / format.block_cols);
    scales_.resize(static_cast<size_t>(scales) * 4);
    for (int64_t i = 0; i < scales; ++i) {
      const float s = 0.003f + 0.001f * static_cast<float>(random() % 4);
      std::memcpy(scales_.data() + i * 4, &s, 4);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      const float v = random.Uniform();
      const uint16_t h = numerics::FloatToBf16(v);
      if (format.elem == tensor::DType::kF32) std::memcpy(elements_.data() + i * 4, &v, 4);
      else std::memcpy(elements_.data() + i * 2, &h, 2);
    }
  }
}

RandomRows::RandomRows(int64_t rows, int64_t cols, tensor::DType dtype, uint32_t seed) : cols_(cols), dtype_(dtype), f32_(static_cast<size_t>(rows * cols)), bf16_(f32_.size()) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  for (size_t i = 0; i < f32_.size(); ++i) {
    bf16_[i] = numerics::FloatToBf16(normal(rng));
    f32_[i] = numerics::Bf16ToFloat(bf16_[i]);
  }
}

tensor::Matrix RandomRows::Matrix(int64_t rows) const {
  return {dtype_ == tensor::DType::kF32 ? static_cast<const void*>(f32_.data()) : bf16_.data(), dtype_, rows, cols_};
}

}  // namespace halfbyte::app
