// What the bits of a checkpoint matrix mean, from dtypes and shapes (numerics-and-formats 4; reference-behaviour 3.2).
#pragma once

#include "quant/source.h"

namespace halfbyte::quant {

// The format of m (its weight, scale and outer entries set); checks every shape against [rows, cols]. FP8 without a scale, packed codes
// without block scales, and shapes that fit nothing are errors that name the tensor.
base::Result<Format> DetectFormat(const SourceMatrix& m, const SourceOptions& options);

// The extents of one expert's slice: the shape without a leading [E] where the tensor is stacked, trailing extents of one dropped.
std::vector<int64_t> SliceExtents(const TensorEntry& entry, bool stacked);

}  // namespace halfbyte::quant
