#include "support/random_data.h"

#include <cmath>

namespace halfbyte::test {

uint64_t Random::Bits() {
  uint64_t x = state_ += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

double Random::Uniform() { return static_cast<double>(Bits() >> 11) * 0x1p-53; }
int64_t Random::Below(int64_t n) { return static_cast<int64_t>(Uniform() * static_cast<double>(n)); }

double Random::Normal() {
  const double radius = std::sqrt(-2 * std::log(1 - Uniform()));
  return radius * std::cos(6.283185307179586 * Uniform());
}

std::vector<float> Random::Normals(int64_t n, double sigma) {
  std::vector<float> out(static_cast<size_t>(n));
  for (float& v : out) v = static_cast<float>(sigma * Normal());
  return out;
}

std::vector<float> AwkwardRows(int64_t rows, int64_t cols, uint64_t seed) {
  Random random(seed);
  std::vector<float> x = random.Normals(rows * cols);
  for (int64_t r = 0; r < rows; ++r) {
    float* row = x.data() + r * cols;
    for (int64_t i = 0; i < cols; ++i)
      if (random.Below(40) == 0) row[i] = i % 2 ? -0.0f : 0.0f;
    if (r % 7 == 3)
      for (int n = 0; n < 2; ++n) row[random.Below(cols)] *= 100;
    if (r % 11 == 5)
      for (int64_t i = 0; i < cols; ++i) row[i] = 0;
    if (r % 13 == 6)
      for (int64_t i = 0; i < cols; ++i) row[i] *= 1e-39f;
  }
  return x;
}

}  // namespace halfbyte::test
