// A trusting reader of our own golden safetensors files (the product's, which trusts nothing, is src/checkpoint), and where they lie.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/check.h"

namespace halfbyte::test {

struct GoldenTensor {
  std::string dtype;  // as in the file: "F32", "BF16", "U8", "I64", ...
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;

  int64_t elements() const;
  template <typename T>
  std::vector<T> As() const {
    HB_CHECK(bytes.size() == static_cast<size_t>(elements()) * sizeof(T), dtype, " read with elements of ", sizeof(T), " bytes");
    std::vector<T> out(static_cast<size_t>(elements()));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
  std::vector<float> Floats() const;  // F32, BF16
};

using GoldenFile = std::map<std::string, GoldenTensor>;
GoldenFile ReadGolden(const std::filesystem::path& path);

// Folders with model.safetensors and expected_nvfp4.safetensors: all of the reference data's where it stands beside the checkout,
// else the copy of one in tests/data.
std::vector<std::filesystem::path> GoldenMoeModels();

}  // namespace halfbyte::test
