// Rows of x or h in the form that an expert GEMM reads (RowFormat in kernel.h).
#pragma once

#include "kernels/api/weights.h"
#include "kernels/cpu/moe/kernel.h"

namespace halfbyte::kernels::cpu::moe {

// What is done to a row before a GEMM: the contract (form) and the memory format of the result. A kernel of a plain row format runs every form on values
// that were quantized and decoded again: kBf16 holds NVFP4 values exactly, kF32 holds NVFP4 and INT8 values.
struct RowForm {
  ActivationForm form = ActivationForm::kPlain;
  RowFormat format = RowFormat::kF32;
  bool round = false;         // to BF16 first (h of the rounded form)
  float input_scale = 1.0f;   // kNvfp4Static

  friend bool operator==(const RowForm&, const RowForm&) = default;
};

// Writes one record of RecordBytes(form.format, RoundUp(k, 16)) bytes from x (BF16 or F32, k values) and returns the factor that the row's sums
// must be multiplied with: the per-token scale, the static scale, or 1.
float PrepareRow(const RowForm& form, DType dtype, const void* x, int64_t k, std::byte* record);

}  // namespace halfbyte::kernels::cpu::moe
