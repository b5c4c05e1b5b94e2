#include "kernels/cpu/quantize/block_kernels.h"
#include "kernels/cpu/quantize/lanes_avx512.h"
#include "kernels/cpu/quantize/quantize_4over6.h"

namespace halfbyte::kernels::quantize {

void FourOverSixAvx512(const void* src, tensor::DType dtype, int64_t blocks, float gs, float gd, uint8_t* codes, uint8_t* scales) {
  ForBatches(src, dtype, blocks, codes, scales, FourOverSix{gs, gd});
}

}  // namespace halfbyte::kernels::quantize
