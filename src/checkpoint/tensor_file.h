// One small safetensors file written at once: results of `eval logits`. Checkpoints are written by safetensors_writer.h.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace halfbyte::checkpoint {

struct NamedTensor {
  std::string name;
  tensor::DType dtype = tensor::DType::kF32;
  tensor::Shape shape;
  std::vector<std::byte> data;  // dense, row-major
};

// Appears under its name only when complete (temporary name, fsync, rename).
base::Status WriteTensorFile(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors);

}  // namespace halfbyte::checkpoint
