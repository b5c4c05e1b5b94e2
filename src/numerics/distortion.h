// How far one set of numbers is from another: the figures that tests and benches print, so that a bound is judged by its meaning.
#pragma once

#include <span>

namespace halfbyte::numerics {

struct Distortion {
  double relative_rmse;  // ||got - want|| / ||want||; 0.0951 for plain NVFP4 on Gaussian weights
  double sqnr_db;        // -20 log10(relative_rmse); infinite for equal inputs
  double max_error;      // largest |got - want|
  double cosine;         // 1 for parallel vectors, and where both are zero
};

// Sums in FP64. got and want have the same size; a NaN in either makes every figure NaN.
Distortion Measure(std::span<const float> got, std::span<const float> want);

}  // namespace halfbyte::numerics
