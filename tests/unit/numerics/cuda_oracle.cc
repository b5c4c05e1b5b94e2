#include "unit/numerics/cuda_oracle.h"

#include <cstdlib>

#ifdef HALFBYTE_HAVE_CUDA_HEADERS
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>

namespace halfbyte::numerics::test {

bool HaveCudaOracle() { return true; }
uint8_t CudaFloatToE2m1(float v) { return __nv_cvt_float_to_fp4(v, __NV_E2M1, cudaRoundNearest); }
uint8_t CudaFloatToE4m3(float v) { return __nv_cvt_float_to_fp8(v, __NV_SATFINITE, __NV_E4M3); }
uint8_t CudaFloatToE5m2(float v) { return __nv_cvt_float_to_fp8(v, __NV_SATFINITE, __NV_E5M2); }
float CudaE2m1ToFloat(uint8_t code) { return __half2float(__half(__nv_cvt_fp4_to_halfraw(code, __NV_E2M1))); }
float CudaE4m3ToFloat(uint8_t code) { return __half2float(__half(__nv_cvt_fp8_to_halfraw(code, __NV_E4M3))); }
float CudaE5m2ToFloat(uint8_t code) { return __half2float(__half(__nv_cvt_fp8_to_halfraw(code, __NV_E5M2))); }
float CudaE8m0ToFloat(uint8_t code) { return __bfloat162float(__nv_bfloat16(__nv_cvt_e8m0_to_bf16raw(code))); }
uint16_t CudaFloatToBf16(float v) { return __bfloat16_as_ushort(__float2bfloat16_rn(v)); }
uint16_t CudaFloatToFp16(float v) { return __half_as_ushort(__float2half_rn(v)); }
float CudaFp16ToFloat(uint16_t bits) { return __half2float(__ushort_as_half(bits)); }

}  // namespace halfbyte::numerics::test
#else
namespace halfbyte::numerics::test {

bool HaveCudaOracle() { return false; }
uint8_t CudaFloatToE2m1(float) { std::abort(); }
uint8_t CudaFloatToE4m3(float) { std::abort(); }
uint8_t CudaFloatToE5m2(float) { std::abort(); }
float CudaE2m1ToFloat(uint8_t) { std::abort(); }
float CudaE4m3ToFloat(uint8_t) { std::abort(); }
float CudaE5m2ToFloat(uint8_t) { std::abort(); }
float CudaE8m0ToFloat(uint8_t) { std::abort(); }
uint16_t CudaFloatToBf16(float) { std::abort(); }
uint16_t CudaFloatToFp16(float) { std::abort(); }
float CudaFp16ToFloat(uint16_t) { std::abort(); }

}  // namespace halfbyte::numerics::test
#endif
