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
  // Pairs, because every 64-bit machine has them; one wide vector type is lowered through memory by GCC 12 and four times slower.
  typedef double Pair __attribute__((vector_size(16)));
  const auto load = [](const double* p) {
    Pair v;
    std::memcpy(&v, p, sizeof v);
    return v;
  };
  Pair s0 = {}, s1 = {}, s2 = {}, s3 = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    s0 += load(a + i) * load(b + i);
    s1 += load(a + i + 2) * load(b + i + 2);
    s2 += load(a + i + 4) * load(b + i + 4);
    s3 += load(a + i + 6) * load(b + i + 6);
  }
  const Pair sum = (s0 + s1) + (s2 + s3);
  double total = sum[0] + sum[1];
  for (; i < n; ++i) total += a[i] * b[i];
  return total;
}

}  // namespace halfbyte::kernels::reference
