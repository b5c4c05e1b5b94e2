// Made-up numbers from a fixed seed: the same on every machine and in every run (std::normal_distribution is not).
#pragma once

#include <cstdint>
#include <vector>

namespace halfbyte::test {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 1) {}
  uint64_t Bits();                       // SplitMix64
  double Uniform();                      // [0, 1)
  int64_t Below(int64_t n);              // 0 .. n-1
  double Normal();                       // mean 0, variance 1
  std::vector<float> Normals(int64_t n, double sigma = 1.0);

 private:
  uint64_t state_;
};

// Rows as kernels meet them and as they don't want to: mostly normal values; every seventh row has two outliers of 100 sigma, every
// eleventh is all zero, every thirteenth is scaled down to FP32 subnormals (1e-39), some elements are +0 and -0.
// F32 [rows, cols]
std::vector<float> AwkwardRows(int64_t rows, int64_t cols, uint64_t seed);

}  // namespace halfbyte::test
