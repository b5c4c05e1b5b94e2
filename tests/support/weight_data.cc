#include "support/weight_data.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "support/random_data.h"

namespace halfbyte::test {

using tensor::DType;
using tensor::Format;
using tensor::Outer;

double E2m1Value(uint8_t code) {
  static const double kMagnitudes[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return (code & 8 ? -1 : 1) * kMagnitudes[code & 7];
}

double E4m3Value(uint8_t code) {
  const int exponent = (code >> 3) & 15, mantissa = code & 7;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return code & 0x80 ? -magnitude : magnitude;
}

double Bf16Value(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// Written otherwise than numerics/bf16.h: the two neighbours are compared by distance.
float RoundBf16(float value) {
  const uint32_t low = std::bit_cast<uint32_t>(value) & 0xFFFF0000u;
  const float down = std::bit_cast<float>(low), up = std::bit_cast<float>(low + 0x10000u);
  const double a = std::abs(static_cast<double>(value) - down), b = std::abs(static_cast<double>(up) - value);
  if (a != b) return a < b ? down : up;
  return low & 0x10000u ? up : down;
}

namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

float PlainValue(Random& random, double sigma) {
  const double v = sigma * random.Normal();
  switch (random.Below(64)) {
    case 0: return 0.0f;
    case 1: return static_cast<float>(v * 30);
    case 2: return static_cast<float>(std::ldexp(v, -125));  // mostly subnormal
    default: return static_cast<float>(v);
  }
}

void FillPlain(WeightData& w, Random& random) {
  const double sigma = 1 / std::sqrt(static_cast<double>(w.k));
  for (int64_t i = 0; i < w.n * w.k; ++i) {
    float value = PlainValue(random, sigma);
    if (w.format.elem == DType::kF32) {
      std::memcpy(w.elements.data() + 4 * i, &value, 4);
    } else if (w.format.elem == DType::kBF16) {
      value = RoundBf16(value);
      const auto bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
      std::memcpy(w.elements.data() + 2 * i, &bits, 2);
    } else {  // F16: made from random bits with exponents up to 2^0, subnormals among them
      const auto bits = static_cast<uint16_t>((random.Bits() & 0x83FF) | (random.Below(16) << 10));
      const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
      const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
      value = static_cast<float>(bits & 0x8000 ? -magnitude : magnitude);
      std::memcpy(w.elements.data() + 2 * i, &bits, 2);
    }
    w.values[static_cast<size_t>(i)] = value;
  }
}

// E4M3 elements of about normal distribution (never a NaN), scales such that values are about 1/sqrt(k).
void FillFp8(WeightData& w, Random& random) {
  const double sigma = 1 / std::sqrt(static_cast<double>(w.k));
  const auto scale = [&] { return static_cast<float>(sigma / 100 * (0.3 + 1.4 * random.Uniform())); };
  const int64_t scale_cols = w.format.block_scale ? CeilDiv(w.k, w.format.block_cols) : 0;
  std::vector<float> scales;
  if (w.format.block_scale) {
    scales.resize(static_cast<size_t>(CeilDiv(w.n, w.format.block_rows) * scale_cols));
    for (float& s : scales) s = random.Below(12) == 0 ? 0.0f : scale();
    w.block_scales.resize(4 * scales.size());
    std::memcpy(w.block_scales.data(), scales.data(), w.block_scales.size());
  } else {
    w.outer.resize(w.format.outer == Outer::kPerRow ? static_cast<size_t>(w.n) : 1);
    for (float& s : w.outer) s = scale();
  }
  for (int64_t i = 0; i < w.n * w.k; ++i) {
    auto code = static_cast<uint8_t>(random.Bits());
    if ((code & 0x7F) == 0x7F) code ^= 1;
    w.elements[static_cast<size_t>(i)] = code;
    const int64_t row = i / w.k, col = i % w.k;
    const float s = w.format.block_scale ? scales[static_cast<size_t>(row / w.format.block_rows * scale_cols + col / w.format.block_cols)]
                                         : w.outer[w.format.outer == Outer::kPerRow ? static_cast<size_t>(row) : 0];
    w.values[static_cast<size_t>(i)] = static_cast<float>(E4m3Value(code)) * s;
  }
}

void DecodeNvfp4(WeightData& w) {
  for (int64_t i = 0; i < w.n * w.k; ++i) {
    const uint8_t byte = w.elements[static_cast<size_t>(i / 2)];
    const uint8_t code = i % 2 ? byte >> 4 : byte & 15;
    w.values[static_cast<size_t>(i)] = E2m1Value(code) * E4m3Value(w.block_scales[static_cast<size_t>(i / 16)]) * w.outer[0];
  }
}

void FillNvfp4(WeightData& w, Random& random) {
  w.block_scales.resize(static_cast<size_t>(w.n * w.k / 16));
  for (uint8_t& byte : w.elements) byte = static_cast<uint8_t>(random.Bits());
  // From the smallest subnormal to 448, most of them large, some zero.
  for (uint8_t& s : w.block_scales) {
    const int64_t kind = random.Below(16);
    s = static_cast<uint8_t>(kind == 0 ? 0 : kind == 1 ? 1 + random.Below(0x7E) : kind == 2 ? 0x7E : 0x60 + random.Below(0x18));
  }
  w.outer = {static_cast<float>((0.5 + random.Uniform()) / std::sqrt(static_cast<double>(w.k)) / 400)};
  DecodeNvfp4(w);
}

WeightData Empty(const Format& format, int64_t n, int64_t k) {
  WeightData w{.format = format, .n = n, .k = k};
  w.elements.resize(static_cast<size_t>(n * k * tensor::DTypeBits(format.elem) / 8));
  w.values.resize(static_cast<size_t>(n * k));
  return w;
}

}  // namespace

tensor::QuantizedMatrix WeightData::Rows(int64_t begin, int64_t end) const {
  HB_CHECK(!format.block_scale || begin % format.block_rows == 0);
  tensor::QuantizedMatrix m{.format = format, .rows = end - begin, .cols = k};
  m.elements = elements.data() + begin * k * tensor::DTypeBits(format.elem) / 8;
  if (format.block_scale)
    m.block_scales = block_scales.data() + begin / format.block_rows * CeilDiv(k, format.block_cols) * tensor::DTypeBits(*format.block_scale) / 8;
  if (!outer.empty()) m.outer = outer.data() + (format.outer == Outer::kPerRow ? begin : 0);
  return m;
}

WeightData RandomWeight(const Format& format, int64_t n, int64_t k, uint64_t seed) {
  Random random(seed);
  WeightData w = Empty(format, n, k);
  if (format.is_plain()) FillPlain(w, random);
  else if (format.is_nvfp4()) FillNvfp4(w, random);
  else FillFp8(w, random);
  return w;
}

WeightData ConstantNvfp4(int64_t n, int64_t k, uint8_t code, uint8_t scale, float ws2) {
  WeightData w = Empty(Format::Nvfp4(), n, k);
  w.block_scales.assign(static_cast<size_t>(n * k / 16), scale);
  w.outer = {ws2};
  for (uint8_t& byte : w.elements) byte = static_cast<uint8_t>(code | code << 4);
  DecodeNvfp4(w);
  return w;
}

std::vector<Format> LinearFormats() {
  return {Format::Bf16(),           Format::F32(),         Format::Plain(DType::kF16),     Format::Fp8Block(128, 128), Format::Fp8Block(32, 32),
          Format::Fp8(Outer::kPerRow), Format::Fp8(Outer::kPerTensor), Format::Nvfp4()};
}

}  // namespace halfbyte::test
