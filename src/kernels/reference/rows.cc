#include "kernels/reference/rows.h"

#include <cstring>

#include "base/check.h"
#include "numerics/bf16.h"
#include "numerics/fp16.h"

namespace halfbyte::kernels::reference {
namespace {

using tensor::DType;

template <typename Out>
void Load(const tensor::Matrix& x, int64_t r, Out* out) {
  switch (x.dtype) {
    case DType::kF32: for (int64_t i = 0; i < x.cols; ++i) out[i] = x.row<float>(r)[i]; return;
    case DType::kBF16: for (int64_t i = 0; i < x.cols; ++i) out[i] = numerics::Bf16ToFloat(x.row<uint16_t>(r)[i]); return;
    case DType::kF16: for (int64_t i = 0; i < x.cols; ++i) out[i] = numerics::Fp16ToFloat(x.row<uint16_t>(r)[i]); return;
    default: HB_CHECK(false, "rows of ", tensor::DTypeName(x.dtype));
  }
}

}  // namespace

void LoadRow(const tensor::Matrix& x, int64_t r, double* out) { Load(x, r, out); }
void LoadRow(const tensor::Matrix& x, int64_t r, float* out) { Load(x, r, out); }

void StoreRow(std::span<const double> values, const tensor::MutableMatrix& out, int64_t r) {
  HB_CHECK(static_cast<int64_t>(values.size()) == out.cols);
  switch (out.dtype) {
    case DType::kF32: for (int64_t i = 0; i < out.cols; ++i) out.row<float>(r)[i] = static_cast<float>(values[i]); return;
    case DType::kBF16:
      for (int64_t i = 0; i < out.cols; ++i) out.row<uint16_t>(r)[i] = numerics::FloatToBf16(static_cast<float>(values[i]));
      return;
    default: HB_CHECK(false, "rows of ", tensor::DTypeName(out.dtype));
  }
}

double Dot(const double* a, const double* b, int64_t n) {
  typedef double Lanes __attribute__((vector_size(64)));
  Lanes sum = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    Lanes x, y;
    std::memcpy(&x, a + i, sizeof x);
    std::memcpy(&y, b + i, sizeof y);
    sum += x * y;
  }
  double total = 0;
  for (int lane = 0; lane < 8; ++lane) total += sum[lane];
  for (; i < n; ++i) total += a[i] * b[i];
  return total;
}

}  // namespace halfbyte::kernels::reference
