#include "kernels/cpu/quantize/block_kernels.h"
#include "kernels/cpu/quantize/lanes_avx2.h"
#include "kernels/cpu/quantize/quantize_modelopt.h"

namespace halfbyte::kernels::quantize {

void ModeloptAvx2(const void* src, tensor::DType dtype, int64_t blocks, float ws2, uint8_t* codes, uint8_t* scales) {
  ForBatches(src, dtype, blocks, codes, scales, Modelopt{ws2});
}

}  // namespace halfbyte::kernels::quantize
