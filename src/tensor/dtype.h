// DType: the element types that checkpoints and kernels use, named as in safetensors files.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace halfbyte::tensor {

enum class DType : uint8_t {
  kF64, kF32, kF16, kBF16,
  kF8E4M3,  // 1-4-3, bias 7, no infinity, NaN = 0x7F/0xFF ("F8_E4M3", PyTorch's float8_e4m3fn)
  kF8E5M2,
  kF8E8M0,  // 2^(byte-127), NaN = 0xFF
  kF4,      // E2M1, two a byte, low nibble first; NVFP4 files of today store U8 instead
  kI64, kI32, kI16, kI8, kU64, kU32, kU16, kU8, kBool,
};

// Bits of one element: 4 for kF4, 8 for kBool.
int DTypeBits(DType dtype);
// The name in a safetensors header: "BF16", "F8_E4M3", ...
std::string_view DTypeName(DType dtype);
std::optional<DType> DTypeFromName(std::string_view name);
// F64 F32 F16 BF16: what a matrix may be before anybody quantized it.
bool IsPlainFloat(DType dtype);

}  // namespace halfbyte::tensor
