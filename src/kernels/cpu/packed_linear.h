// PackedLinear: a dense matrix as the `cpu` backend keeps it (common/layout.h), and how the canonical layout gets there.
#pragma once

#include <memory>

#include "kernels/api/weights.h"
#include "kernels/cpu/common/layout.h"
#include "tensor/buffer.h"

namespace halfbyte::kernels::cpu {

class PackedLinear : public LinearWeight {
 public:
  // kUnsupported for formats and shapes without a packed form; kOutOfMemory.
  static base::Result<std::unique_ptr<PackedLinear>> Create(const Format& format, int64_t n, int64_t k);
  static base::Status Supports(const Format& format);
  static int64_t Bytes(const Format& format, int64_t n, int64_t k);

  // Rows [row_begin, row_begin + part.rows). Plain parts may have any of F32, BF16, F16 and are converted (to nearest even);
  // others must have the weight's format. kBadFile where an FP8 code is NaN, or a block scale of NVFP4 is NaN or negative.
  // Threads may pack disjoint parts at once.
  base::Status Pack(int64_t row_begin, const QuantizedMatrix& part);

  Format format() const override { return format_; }
  int64_t n() const override { return view_.n; }
  int64_t k() const override { return view_.k; }
  int64_t bytes() const override { return Bytes(format_, view_.n, view_.k); }
  void CopyFrom(const LinearWeight& other) override;
  void Drop() override;
  const LinearView& view() const { return view_; }

 private:
  void PackPlain(int64_t row_begin, const QuantizedMatrix& part);
  base::Status PackFp8(int64_t row_begin, const QuantizedMatrix& part);
  base::Status PackNvfp4(int64_t row_begin, const QuantizedMatrix& part);
  void PackFp8Scales(int64_t row_begin, const QuantizedMatrix& part);
  void MarkPaddingSmall();

  Format format_;
  LinearView view_;
  tensor::Buffer data_, scales_, small_codes_;
};

// The token embedding, row-major in BF16 or F32.
class PackedEmbedding : public EmbeddingWeight {
 public:
  static base::Result<std::unique_ptr<PackedEmbedding>> Create(DType dtype, int64_t vocab, int64_t d);
  base::Status Pack(int64_t row_begin, const Matrix& part);
  int64_t bytes() const override { return vocab_ * d_ * tensor::DTypeBits(dtype_) / 8; }
  void CopyFrom(const EmbeddingWeight& other) override { rows_.CopyHost(static_cast<const PackedEmbedding&>(other).rows_); }
  void Drop() override { rows_.DropHost(); }
  DType dtype() const { return dtype_; }
  int64_t vocab() const { return vocab_; }
  int64_t d() const { return d_; }
  const void* row(int64_t i) const { return rows_.as<std::byte>() + i * d_ * tensor::DTypeBits(dtype_) / 8; }

 private:
  DType dtype_ = DType::kBF16;
  int64_t vocab_ = 0, d_ = 0;
  tensor::Buffer rows_;
};

}  // namespace halfbyte::kernels::cpu
