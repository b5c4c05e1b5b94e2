#include "kernels/reference/stored_matrix.h"

#include <array>
#include <cstring>

#include "base/check.h"
#include "kernels/reference/rows.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "numerics/e5m2.h"
#include "numerics/nvfp4_block.h"

namespace halfbyte::kernels::reference {
namespace {

using base::ErrorCode;
using base::Fail;
using tensor::DType;
using tensor::Format;
using tensor::Outer;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
size_t RowBytes(const Format& format, int64_t k) { return static_cast<size_t>(k * tensor::DTypeBits(format.elem) / 8); }
// All 256 values, so that a decoded element costs a look-up.
template <float (*decode)(uint8_t)>
const std::array<float, 256>& ByteValues() {
  static const std::array<float, 256> values = [] {
    std::array<float, 256> v;
    for (int code = 0; code < 256; ++code) v[static_cast<size_t>(code)] = decode(static_cast<uint8_t>(code));
    return v;
  }();
  return values;
}

size_t ScaleBytes(const Format& format) { return static_cast<size_t>(tensor::DTypeBits(*format.block_scale) / 8); }

}  // namespace

base::Status StoredMatrix::Supports(const Format& f) {
  const bool plain = f.is_plain() && (f.elem == DType::kF32 || f.elem == DType::kBF16 || f.elem == DType::kF16);
  const bool fp8_blocks = f.is_fp8() && f.block_scale == DType::kF32 && f.block_rows > 0 && f.block_cols > 0 && f.outer == Outer::kNone;
  const bool fp8_outer = f.is_fp8() && !f.block_scale && f.outer != Outer::kNone;
  const bool nvfp4 = f.is_nvfp4() && f.block_rows == 1 && f.block_cols == numerics::kBlock && f.outer == Outer::kPerTensor;
  if (plain || fp8_blocks || fp8_outer || nvfp4) return {};
  return Fail(base::Error(ErrorCode::kUnsupported, base::StrCat("weights in the format ", f.ToString(), " cannot be used as they are"))
                  .Hint("they have to be decoded to BF16 while loading"));
}

base::Result<std::unique_ptr<StoredMatrix>> StoredMatrix::Create(const Format& format, int64_t n, int64_t k) {
  HB_RETURN_IF_ERROR(Supports(format));
  if (n <= 0 || k <= 0) return Fail(ErrorCode::kInvalidArgument, "a weight matrix of ", n, " x ", k);
  if (format.is_nvfp4() && k % numerics::kBlock != 0)
    return Fail(ErrorCode::kUnsupported, "NVFP4 needs a row length that is a multiple of 16, not ", k);
  auto m = std::unique_ptr<StoredMatrix>(new StoredMatrix);
  m->format_ = format;
  m->n_ = n;
  m->k_ = k;
  HB_ASSIGN_OR_RETURN(m->elements_, tensor::Buffer::Host(static_cast<size_t>(n) * RowBytes(format, k)));
  if (format.block_scale) {
    const auto scales = static_cast<size_t>(CeilDiv(n, format.block_rows) * m->scale_cols());
    HB_ASSIGN_OR_RETURN(m->block_scales_, tensor::Buffer::Host(scales * ScaleBytes(format)));
  }
  m->outer_ = std::vector<std::atomic<float>>(format.outer == Outer::kPerRow ? static_cast<size_t>(n) : 1);
  for (auto& scale : m->outer_) scale = 1.0f;
  return m;
}

void StoredMatrix::CopyFrom(const StoredMatrix& other) {
  HB_CHECK(format_ == other.format_ && n_ == other.n_ && k_ == other.k_, "a weight of another shape or format");
  elements_.CopyHost(other.elements_);
  block_scales_.CopyHost(other.block_scales_);
  for (size_t i = 0; i < outer_.size(); ++i) outer_[i] = other.outer_[i].load();
}

void StoredMatrix::Drop() {
  elements_.DropHost();
  block_scales_.DropHost();
}

base::Status StoredMatrix::Pack(int64_t row_begin, const tensor::QuantizedMatrix& part) {
  if (!(part.format == format_) || part.cols != k_ || row_begin < 0 || row_begin + part.rows > n_)
    return Fail(ErrorCode::kInvalidArgument, "rows from ", row_begin, ", ", part.rows, " x ", part.cols, " ", part.format.ToString(),
                ", do not belong into a matrix of ", n_, " x ", k_, " ", format_.ToString());
  const size_t row_bytes = RowBytes(format_, k_);
  if (part.rows > 0)
    std::memcpy(elements_.as<uint8_t>() + static_cast<size_t>(row_begin) * row_bytes, part.elements, static_cast<size_t>(part.rows) * row_bytes);
  if (format_.block_scale && part.rows > 0) {
    if (row_begin % format_.block_rows != 0)
      return Fail(ErrorCode::kInvalidArgument, "rows from ", row_begin, " do not start a block of ", format_.block_rows, " rows");
    const size_t bytes = static_cast<size_t>(scale_cols()) * ScaleBytes(format_);
    std::memcpy(block_scales_.as<uint8_t>() + static_cast<size_t>(row_begin / format_.block_rows) * bytes, part.block_scales,
                static_cast<size_t>(CeilDiv(part.rows, format_.block_rows)) * bytes);
  }
  if (format_.outer == Outer::kPerTensor) outer_[0].store(*part.outer, std::memory_order_relaxed);
  if (format_.outer == Outer::kPerRow)
    for (int64_t r = 0; r < part.rows; ++r) outer_[static_cast<size_t>(row_begin + r)].store(part.outer[r], std::memory_order_relaxed);
  return {};
}

int64_t StoredMatrix::scale_cols() const { return format_.block_scale ? CeilDiv(k_, format_.block_cols) : 0; }

float StoredMatrix::Outer(int64_t n) const {
  return outer_[format_.outer == Outer::kPerRow ? static_cast<size_t>(n) : 0].load(std::memory_order_relaxed);
}

double StoredMatrix::OuterScale(int64_t n) const { return format_.is_nvfp4() ? Outer(n) : 1.0; }

void StoredMatrix::DecodeRow(int64_t n, double* out) const {
  HB_CHECK(0 <= n && n < n_);
  if (format_.is_plain()) return LoadRow(tensor::Matrix(elements_.data(), format_.elem, n_, k_), n, out);
  const auto* codes = elements_.as<uint8_t>() + static_cast<size_t>(n) * RowBytes(format_, k_);
  if (format_.is_nvfp4()) {
    const uint8_t* scales = block_scales_.as<uint8_t>() + n * scale_cols();
    for (int64_t b = 0; b < scale_cols(); ++b) {
      const float scale = numerics::E4m3ToFloat(scales[b]);
      for (int64_t i = b * numerics::kBlock; i < (b + 1) * numerics::kBlock; i += 2) {
        out[i] = numerics::E2m1ToFloat(numerics::UnpackE2m1Even(codes[i / 2])) * scale;
        out[i + 1] = numerics::E2m1ToFloat(numerics::UnpackE2m1Odd(codes[i / 2])) * scale;
      }
    }
    return;
  }
  const float* scales = format_.block_scale ? block_scales_.as<float>() + n / format_.block_rows * scale_cols() : nullptr;
  const float outer = Outer(n);
  const auto& values = format_.elem == DType::kF8E4M3 ? ByteValues<numerics::E4m3ToFloat>() : ByteValues<numerics::E5m2ToFloat>();
  if (scales == nullptr) {
    for (int64_t i = 0; i < k_; ++i) out[i] = values[codes[i]] * outer;
  } else {
    for (int64_t i = 0; i < k_; ++i) out[i] = values[codes[i]] * scales[i / format_.block_cols];
  }
}

}  // namespace halfbyte::kernels::reference
