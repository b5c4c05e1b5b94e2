// Weights in every format, made up bit by bit, together with the values that the bits mean.
//
// The values are computed here from the formats' definitions (powers of two, a table of eight numbers), not by src/numerics, so that a
// test which uses them has a second opinion.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/format.h"
#include "tensor/matrix.h"

namespace halfbyte::test {

double E2m1Value(uint8_t code);
double E4m3Value(uint8_t code);
double Bf16Value(uint16_t bits);
float RoundBf16(float value);  // nearest even

struct WeightData {
  tensor::Format format;
  int64_t n = 0, k = 0;
  std::vector<uint8_t> elements, block_scales;  // bytes in the canonical layout
  std::vector<float> outer;
  std::vector<double> values;  // [n, k], exact but for one FP32 rounding in FP8 formats (the contract: fp32(fp8) * fp32(scale))

  tensor::QuantizedMatrix View() const { return Rows(0, n); }
  // Rows [begin, end); begin is a multiple of the format's block rows.
  tensor::QuantizedMatrix Rows(int64_t begin, int64_t end) const;
};

// Plain (F32, BF16, F16), FP8 (block, per row, per tensor) or NVFP4. Values of about 1/sqrt(k), some of them far larger, some zero or
// subnormal; in block formats some blocks have a scale of zero.
WeightData RandomWeight(const tensor::Format& format, int64_t n, int64_t k, uint64_t seed);

// NVFP4 with every code and every block scale the same (user case T01).
WeightData ConstantNvfp4(int64_t n, int64_t k, uint8_t code, uint8_t scale, float ws2);

// The formats that RandomWeight can make and every backend is asked about.
std::vector<tensor::Format> LinearFormats();

}  // namespace halfbyte::test
