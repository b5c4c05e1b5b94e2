#include "tensor/shape.h"

namespace halfbyte::tensor {

int64_t Shape::elements() const {
  int64_t n = 1;
  for (int64_t d : dims_) n *= d;
  return n;
}

base::Result<int64_t> Shape::CheckedElements() const {
  int64_t n = 1;
  bool zero = false;
  for (int64_t d : dims_) {
    if (d < 0) return base::Fail(base::ErrorCode::kBadFile, "shape ", ToString(), " has a negative extent");
    if (d == 0) { zero = true; continue; }
    if (__builtin_mul_overflow(n, d, &n)) return base::Fail(base::ErrorCode::kBadFile, "shape ", ToString(), " has more elements than 63 bits count");
  }
  return zero ? 0 : n;
}

std::string Shape::ToString() const {
  std::string out = "[";
  for (size_t i = 0; i < dims_.size(); ++i) out += (i ? ", " : "") + std::to_string(dims_[i]);
  return out + "]";
}

base::Result<int64_t> TensorBytes(DType dtype, const Shape& shape) {
  HB_ASSIGN_OR_RETURN(int64_t n, shape.CheckedElements());
  int64_t bits;
  if (__builtin_mul_overflow(n, static_cast<int64_t>(DTypeBits(dtype)), &bits))
    return base::Fail(base::ErrorCode::kBadFile, "shape ", shape.ToString(), " of ", DTypeName(dtype), " has more bits than 63 bits count");
  if (bits % 8) return base::Fail(base::ErrorCode::kBadFile, "shape ", shape.ToString(), " of ", DTypeName(dtype), " does not end on a byte");
  return bits / 8;
}

}  // namespace halfbyte::tensor
