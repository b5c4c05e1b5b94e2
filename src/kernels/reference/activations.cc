#include "kernels/reference/activations.h"

#include <algorithm>

#include "kernels/reference/rows.h"
#include "numerics/activation_quantizer.h"
#include "numerics/nvfp4_block.h"
#include "platform/parallel.h"

namespace halfbyte::kernels::reference {
namespace {

struct Nvfp4Row {
  std::vector<uint8_t> codes, scales;
  explicit Nvfp4Row(int64_t k) : codes(static_cast<size_t>(k / 2)), scales(static_cast<size_t>(k / numerics::kBlock)) {}

  void Decode(double* out) const {
    for (size_t i = 0; i < 2 * codes.size(); i += 2) {
      const float scale = numerics::E4m3ToFloat(scales[i / numerics::kBlock]);
      out[i] = numerics::E2m1ToFloat(numerics::UnpackE2m1Even(codes[i / 2])) * scale;
      out[i + 1] = numerics::E2m1ToFloat(numerics::UnpackE2m1Odd(codes[i / 2])) * scale;
    }
  }
};

// One row; returns its outer scale.
double MakeRow(const float* x, int64_t k, ActivationForm form, float input_scale, double* out) {
  switch (form) {
    case ActivationForm::kPlain: std::copy(x, x + k, out); return 1;
    case ActivationForm::kInt8Groups: {
      std::vector<int8_t> codes(static_cast<size_t>(k));
      std::vector<float> scales(static_cast<size_t>(numerics::Int8Groups(k)));
      numerics::QuantizeActivationInt8(x, 1, k, codes.data(), scales.data());
      for (int64_t i = 0; i < k; ++i) out[i] = static_cast<double>(scales[i / numerics::kInt8Group]) * codes[i];
      return 1;
    }
    case ActivationForm::kNvfp4PerToken: {
      Nvfp4Row row(k);
      float row_scale = 0;
      numerics::QuantizeActivationPerToken(x, 1, k, row.codes.data(), row.scales.data(), &row_scale);
      row.Decode(out);
      return row_scale;
    }
    case ActivationForm::kNvfp4Static: {
      Nvfp4Row row(k);
      numerics::QuantizeActivationPerTensor(x, 1, k, input_scale, row.codes.data(), row.scales.data());
      row.Decode(out);
      return input_scale;
    }
  }
  return 0;
}

}  // namespace

Activations MakeActivations(const Matrix& x, ActivationForm form, float input_scale) {
  Activations a{.rows = x.rows, .k = x.cols};
  a.values.resize(static_cast<size_t>(x.rows * x.cols));
  a.scale.resize(static_cast<size_t>(x.rows));
  platform::ParallelFor(x.rows, 8, [&](int64_t begin, int64_t end) {
    std::vector<float> row(static_cast<size_t>(x.cols));
    for (int64_t r = begin; r < end; ++r) {
      LoadRow(x, r, row.data());
      a.scale[r] = MakeRow(row.data(), x.cols, form, input_scale, a.values.data() + r * x.cols);
    }
  });
  return a;
}

}  // namespace halfbyte::kernels::reference
