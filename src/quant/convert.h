// Conversions of one matrix (or of some rows) between formats, on one thread: the steps dequantize, amax and quantize of the load pipeline.
#pragma once

#include <span>
#include <vector>

#include "numerics/fp8_dequantizer.h"
#include "tensor/matrix.h"

namespace halfbyte::quant {

// Plain 16-bit or 32-bit values made from any format.
//   to BF16: FP8 and FP4 are decoded in FP32 and rounded once; FP16 and FP32 are rounded.  to F32: exact, or rounded where FP32 cannot hold scale * code.
// out: rows * cols elements. column_factors (F32 [cols] or null, for formats that are not plain): each value is multiplied in FP32 before it is rounded.
// Returns how many values changed in a plain conversion (FP16 -> BF16), 0 otherwise.
int64_t ToPlain(const tensor::QuantizedMatrix& m, tensor::DType to, void* out, const float* column_factors = nullptr);

// The scales of an FP8 matrix as the dequantizer wants them.
numerics::Fp8Scales ScalesOf(const tensor::QuantizedMatrix& m);

// NaN and infinite elements of a plain or FP8 matrix; weights must have none.
int64_t CountNonfinite(const tensor::QuantizedMatrix& m);

// FP8 with one scale a row: scale = amax / 448 (1.0 where that is zero), code = E4M3(x / scale).
// codes U8 [rows, cols], scales F32 [rows].
void QuantizeRowsFp8(const tensor::Matrix& m, uint8_t* codes, float* scales);

}  // namespace halfbyte::quant
