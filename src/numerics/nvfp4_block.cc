#include "numerics/nvfp4_block.h"

#include "base/check.h"

namespace halfbyte::numerics {

void DecodeMatrix(const uint8_t* codes, const uint8_t* scales, float ws2, int64_t rows, int64_t cols, float* out) {
  HB_CHECK(cols % kBlock == 0, cols, " columns are not a multiple of 16");
  const int64_t blocks = rows * cols / kBlock;
  for (int64_t b = 0; b < blocks; ++b) {
    const float scale = E4m3ToFloat(scales[b]);
    for (int j = 0; j < kBlock / 2; ++j) {
      const uint8_t byte = codes[b * (kBlock / 2) + j];
      out[b * kBlock + 2 * j] = E2m1ToFloat(UnpackE2m1Even(byte)) * scale * ws2;
      out[b * kBlock + 2 * j + 1] = E2m1ToFloat(UnpackE2m1Odd(byte)) * scale * ws2;
    }
  }
}

}  // namespace halfbyte::numerics
