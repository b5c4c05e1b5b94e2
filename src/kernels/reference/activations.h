// What enters a matrix product: rows in FP64 holding exactly the values that the activation form stands for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/api/weights.h"

namespace halfbyte::kernels::reference {

// Row r is values[r * k .. (r+1) * k) * scale[r].
//   kPlain          values = x, scale = 1
//   kInt8Groups     values = code * group scale (exact in FP64), scale = 1
//   kNvfp4PerToken  values = E2M1 * E4M3, scale = the row's FP32 scale
//   kNvfp4Static    values = E2M1 * E4M3, scale = input_scale
struct Activations {
  int64_t rows = 0, k = 0;
  std::vector<double> values;
  std::vector<double> scale;
  const double* row(int64_t r) const { return values.data() + r * k; }
};

// x: F32, BF16 or F16 [rows, k]. Quantized forms see x in FP32 as it is given; input_scale is read by kNvfp4Static only.
Activations MakeActivations(const Matrix& x, ActivationForm form, float input_scale);

}  // namespace halfbyte::kernels::reference
