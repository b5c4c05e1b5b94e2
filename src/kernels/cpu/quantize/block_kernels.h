// The variants' functions, one .cc a kernel and ISA, and the table that the choice is made from (weight_quantizer.cc). All work on whole
// blocks of 16 in memory order: since cols % 16 == 0, a matrix [rows, cols] is one run of rows * cols / 16 blocks, 8 code bytes and one
// scale byte each.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace halfbyte::kernels::quantize {

// What ModelOpt's four-over-six needs beside ws2, made once a tensor by the specification's operations (M = 256).
struct ModeloptSearch {
  float ws2;
  float u, inverse_u;      // of calibration's fake quantizer, see QuantizeBlockModeloptFourOverSix
  float tensor_sixth;      // the tensor's amax / 6
  bool multiply_by_sixth;  // / 6 is * fl(1/6) (CUDA)
};

// The divisors of all 126 scales and their reciprocals rn(1/divisor).
struct SweepTable {
  static constexpr int kLast = 0x7E;
  float ws2;
  float divisor[kLast + 1], reciprocal[kLast + 1];  // by code, 1..kLast
};

struct BlockKernels {
  // Load-time contract, MSE, scaled error form. gs = rn(1/ws2), gd = rn(1/gs), kMinWs2 <= ws2 <= kMaxWs2.
  void (*four_over_six)(const void* src, tensor::DType dtype, int64_t blocks, float gs, float gd, uint8_t* codes, uint8_t* scales);
  // ModelOpt's dynamic path. kMinModeloptWs2 <= ws2 <= MaxModeloptWs2(dtype).
  void (*modelopt)(const void* src, tensor::DType dtype, int64_t blocks, float ws2, uint8_t* codes, uint8_t* scales);
  // The same bounds of ws2; the tensor's amax is not zero.
  void (*modelopt_4over6)(const void* src, tensor::DType dtype, int64_t blocks, const ModeloptSearch& search, uint8_t* codes, uint8_t* scales);
  void (*modelopt_sweep)(const void* src, tensor::DType dtype, int64_t blocks, const SweepTable& table, uint8_t* codes, uint8_t* scales);
  // Largest bit pattern without the sign; for these formats that is the order of magnitudes, infinity and NaN on top.
  uint32_t (*max_bits)(const void* src, tensor::DType dtype, int64_t n);
};

// Between these no inverse is subnormal, and halving it is exact. Outside (an amax under 2e-27 or over 3e33: no trained weight) the
// scalar specification runs.
inline constexpr float kMinWs2 = 0x1p-100f, kMaxWs2 = 0x1p100f;

// An amax of 2.3e-15: above, whatever is smaller than 2^-100 (where the kernel's division would lose its remainder) has a quotient under
// 2^-100 / (2^-9 * 2^-60) = 2^-31 and code 0.
inline constexpr float kMinModeloptWs2 = 0x1p-60f;
// The ModelOpt kernel halves its quotients and takes signs from the source. For both to be right no negative element may vanish in the
// division: the smallest magnitude of the source over the largest divisor, 448 * ws2, must stay above 2^-149.
constexpr float MaxModeloptWs2(tensor::DType dtype) {
  return dtype == tensor::DType::kF16 ? kMaxWs2 : dtype == tensor::DType::kBF16 ? 0x1p6f : 0x1p-10f;
}

#define HALFBYTE_BLOCK_KERNELS(isa)                                                                                                     \
  void FourOverSix##isa(const void* src, tensor::DType dtype, int64_t blocks, float gs, float gd, uint8_t* codes, uint8_t* scales);     \
  void Modelopt##isa(const void* src, tensor::DType dtype, int64_t blocks, float ws2, uint8_t* codes, uint8_t* scales);                 \
  void Modelopt4over6##isa(const void* src, tensor::DType dtype, int64_t blocks, const ModeloptSearch& search, uint8_t* codes,           \
                           uint8_t* scales);                                                                                            \
  void ModeloptSweep##isa(const void* src, tensor::DType dtype, int64_t blocks, const SweepTable& table, uint8_t* codes,                \
                          uint8_t* scales);                                                                                             \
  uint32_t MaxBits##isa(const void* src, tensor::DType dtype, int64_t n);                                                               \
  void Fp8ToBf16##isa(const uint8_t* elements, tensor::DType dtype, int64_t n, float scale, uint16_t* out);                             \
  void F32ToBf16##isa(const float* src, int64_t n, uint16_t* out);

HALFBYTE_BLOCK_KERNELS(Avx2)
HALFBYTE_BLOCK_KERNELS(Avx512)
#undef HALFBYTE_BLOCK_KERNELS

}  // namespace halfbyte::kernels::quantize
