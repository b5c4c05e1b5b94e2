#include "tensor/dtype.h"

#include <array>

namespace halfbyte::tensor {
namespace {

struct Row { DType dtype; std::string_view name; int bits; };
constexpr std::array kRows = {
    Row{DType::kF64, "F64", 64},       Row{DType::kF32, "F32", 32},        Row{DType::kF16, "F16", 16},
    Row{DType::kBF16, "BF16", 16},     Row{DType::kF8E4M3, "F8_E4M3", 8},  Row{DType::kF8E5M2, "F8_E5M2", 8},
    Row{DType::kF8E8M0, "F8_E8M0", 8}, Row{DType::kF4, "F4", 4},           Row{DType::kI64, "I64", 64},
    Row{DType::kI32, "I32", 32},       Row{DType::kI16, "I16", 16},        Row{DType::kI8, "I8", 8},
    Row{DType::kU64, "U64", 64},       Row{DType::kU32, "U32", 32},        Row{DType::kU16, "U16", 16},
    Row{DType::kU8, "U8", 8},          Row{DType::kBool, "BOOL", 8},
};

}  // namespace

int DTypeBits(DType dtype) { return kRows[static_cast<size_t>(dtype)].bits; }
std::string_view DTypeName(DType dtype) { return kRows[static_cast<size_t>(dtype)].name; }

std::optional<DType> DTypeFromName(std::string_view name) {
  for (const Row& row : kRows) if (row.name == name) return row.dtype;
  return std::nullopt;
}

bool IsPlainFloat(DType d) { return d == DType::kF64 || d == DType::kF32 || d == DType::kF16 || d == DType::kBF16; }

}  // namespace halfbyte::tensor
