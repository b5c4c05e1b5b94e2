// Weights to NVFP4, fast: what the load pipeline and the `quantize` command run, many calls in parallel.
//
// Every function gives the bytes of the scalar specification (numerics/weight_quantizer.h) for every finite input, on every machine;
// which variant runs is a matter of speed only. One thread a call; no state, no allocation.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "numerics/fp8_dequantizer.h"
#include "numerics/weight_quantizer.h"
#include "tensor/dtype.h"

namespace halfbyte::kernels {

struct WeightQuantizer {
  const char* name;  // "avx512", "avx2", "scalar"

  // src [n] of dtype kBF16, kF16 or kF32. A NaN or an infinity is counted: the caller refuses the matrix (with layer, expert, tensor).
  numerics::AmaxResult (*amax)(const void* src, tensor::DType dtype, int64_t n);

  // src [rows, cols] row-major of dtype kBF16, kF16 or kF32, finite, cols % 16 == 0; FP32 values are quantized as they are (a contract
  // that wants them in BF16 first calls f32_to_bf16). codes U8 [rows, cols/2], scales U8 [rows, cols/16]. No alignment is asked for.
  // Fast for the contracts Online() (any m), Modelopt(), ModeloptFourOverSix() and ModeloptSweep(); others run the specification.
  void (*quantize)(const numerics::WeightContract& contract, const void* src, tensor::DType dtype, int64_t rows, int64_t cols,
                   const numerics::GlobalScale& scale, uint8_t* codes, uint8_t* scales);

  // FP8 elements U8 [., cols] (kF8E4M3 or kF8E5M2) to BF16: bf16(rn(element * scale)), rows [first_row, first_row + count) of the
  // matrix to out [count, cols]. A NaN element or scale gives NaN.
  void (*fp8_to_bf16)(const uint8_t* elements, tensor::DType dtype, int64_t cols, const numerics::Fp8Scales& scales, int64_t first_row,
                      int64_t count, uint16_t* out);

  // src F32 [n] -> out BF16 [n], nearest even, subnormals kept. src and out may be the same memory.
  void (*f32_to_bf16)(const float* src, int64_t n, uint16_t* out);
};

// All variants that this processor can run, best first; the last one is "scalar".
std::span<const WeightQuantizer* const> WeightQuantizers();
// The best one.
const WeightQuantizer& ChooseWeightQuantizer();
// The one that the last ("quantize", name) among --kernel's pairs names, the best one where there is none; kInvalidArgument lists the names that run here.
base::Result<const WeightQuantizer*> ChooseWeightQuantizer(const std::vector<std::pair<std::string, std::string>>& kernels);

}  // namespace halfbyte::kernels
