// Shape: the extents of a tensor, outermost first; [] is a scalar of one element.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/result.h"
#include "tensor/dtype.h"

namespace halfbyte::tensor {

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(std::vector<int64_t> dims) : dims_(std::move(dims)) {}

  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t operator[](int i) const { return dims_[static_cast<size_t>(i)]; }
  const std::vector<int64_t>& dims() const { return dims_; }
  // Product of the extents. Only for shapes that passed CheckedElements.
  int64_t elements() const;
  // The product, or an error where an extent is negative or the product does not fit 63 bits.
  base::Result<int64_t> CheckedElements() const;
  std::string ToString() const;  // "[128, 2048]"

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::vector<int64_t> dims_;
};

// Bytes of a dense tensor; an error where the product overflows or a sub-byte type does not end on a byte.
base::Result<int64_t> TensorBytes(DType dtype, const Shape& shape);

}  // namespace halfbyte::tensor
