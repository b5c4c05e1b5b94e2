// NVIDIA's host conversions (cuda_fp4.h, cuda_fp8.h, cuda_bf16.h, cuda_fp16.h) behind plain functions.
#pragma once

#include <cstdint>

namespace halfbyte::numerics::test {

bool HaveCudaOracle();
uint8_t CudaFloatToE2m1(float v);
uint8_t CudaFloatToE4m3(float v);
uint8_t CudaFloatToE5m2(float v);
float CudaE2m1ToFloat(uint8_t code);
float CudaE4m3ToFloat(uint8_t code);
float CudaE5m2ToFloat(uint8_t code);
float CudaE8m0ToFloat(uint8_t code);
uint16_t CudaFloatToBf16(float v);
uint16_t CudaFloatToFp16(float v);
float CudaFp16ToFloat(uint16_t bits);

}  // namespace halfbyte::numerics::test
