// Comparing matrices of results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace halfbyte::test {

inline constexpr double kUnit = 0x1p-24;    // half a unit in the last place of FP32, relative
inline constexpr double kFloor = 1e-30;     // absolute, see backend_compare.h

// Row by row, ||got - want|| <= tight * ||want|| + kFloor; `exceptions` (a share of the rows, at least one row where it is above 0) may be
// between tight and loose.
struct RowBound {
  double tight = 1e-5;
  double loose = 1e-5;
  double exceptions = 0;
};
void ExpectRowsClose(const std::vector<float>& got, const std::vector<float>& want, int64_t rows, const RowBound& bound);

// |got[i] - want[i]| <= bound[i] + kFloor for every i.
void ExpectWithin(const std::vector<float>& got, const std::vector<float>& want, const std::vector<double>& bound);

// Every bit equal (-0.0 is not 0.0, a NaN equals itself).
bool SameBits(const float* a, const float* b, int64_t n);
void ExpectSameBits(const std::vector<float>& got, const std::vector<float>& want, const std::string& what);

}  // namespace halfbyte::test
