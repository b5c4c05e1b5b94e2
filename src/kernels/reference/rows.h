// Reading rows of any plain dtype as FP64, and writing them with the rounding that the output's dtype asks for.
//
// Why FP64 everywhere between two rounding points: a product of two FP32 (or BF16, FP8, NVFP4) values is exact in FP64, and a sum of
// 100,000 of them is off by some 1e-12 of the sum of magnitudes. So every result here is the FP32 rounding of the true value for
// all practical purposes, whatever the order of summation; what a differential test measures is the other backend's error alone.
// FP32 accumulators would meet the bounds against transformers too (2e-4 on logits, 1e-5 on moe.out), but then half of a
// difference would be ours.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/matrix.h"

namespace halfbyte::kernels::reference {

// row r of x (F32, BF16 or F16) -> out FP64 [x.cols]
void LoadRow(const tensor::Matrix& x, int64_t r, double* out);
// The same into FP32 (exact: no dtype here is wider).
void LoadRow(const tensor::Matrix& x, int64_t r, float* out);

// values FP64 [out.cols], rounded to FP32 and from there to out's dtype (F32, BF16), the way an FP32 accumulator is written out.
void StoreRow(std::span<const double> values, const tensor::MutableMatrix& out, int64_t r);

// Eight running sums, added up at the end: the order depends on n only.
double Dot(const double* a, const double* b, int64_t n);

}  // namespace halfbyte::kernels::reference
