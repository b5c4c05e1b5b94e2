#include "kernels/cpu/quantize/block_kernels.h"
#include "kernels/cpu/quantize/lanes_avx2.h"
#include "kernels/cpu/quantize/quantize_modelopt_search.h"

namespace halfbyte::kernels::quantize {

void Modelopt4over6Avx2(const void* src, tensor::DType dtype, int64_t blocks, const ModeloptSearch& search, uint8_t* codes, uint8_t* scales) {
  ForBatches(src, dtype, blocks, codes, scales, ModeloptFourOverSix{search});
}

void ModeloptSweepAvx2(const void* src, tensor::DType dtype, int64_t blocks, const SweepTable& table, uint8_t* codes, uint8_t* scales) {
  ForBatches(src, dtype, blocks, codes, scales, ModeloptSweep{table});
}

}  // namespace halfbyte::kernels::quantize
