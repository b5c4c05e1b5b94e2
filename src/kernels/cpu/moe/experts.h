// The packed experts of one layer.
#pragma once

#include <array>
#include <vector>

#include "kernels/api/weights.h"
#include "kernels/cpu/moe/kernels.h"
#include "tensor/buffer.h"

namespace halfbyte::kernels::cpu::moe {

// One matrix of an expert as packed tiles (kernel.h).
struct PartLayout {
  WeightKind kind = WeightKind::kBf16;
  int64_t n = 0, k = 0;
  int64_t tiles = 0;       // of 16 output columns; down has an even number, the padding is zero
  int64_t tile_bytes = 0;  // a multiple of 64
  int64_t block_cols = 0;  // FP8: inner values under one scale
  bool e5m2 = false;       // FP8
  int64_t offset = 0;      // of tile 0 in the layer's buffer
  int64_t stride = 0;      // from one tile to the next: gate and up tiles alternate
};

class CpuExperts : public ExpertsWeight {
 public:
  CpuExperts(ExpertsSpec spec, KernelSet kernels, tensor::Buffer buffer);

  const ExpertsSpec& spec() const override { return spec_; }
  int64_t bytes() const override { return static_cast<int64_t>(buffer_.bytes()); }
  void CopyFrom(const ExpertsWeight& other) override;
  void Drop() override { buffer_.DropHost(); }
  const KernelSet& kernels() const { return kernels_; }

  const PartLayout& layout(int64_t expert, ExpertPart part) const { return layouts_[expert][static_cast<int>(part)]; }
  const std::byte* tile(const PartLayout& p, int64_t i) const { return buffer_.as<std::byte>() + p.offset + i * p.stride; }
  std::byte* tile(const PartLayout& p, int64_t i) { return buffer_.as<std::byte>() + p.offset + i * p.stride; }

  // weight_scale_2 of an NVFP4 matrix; 1 otherwise (FP8 scales are in the tiles).
  float& outer(int64_t expert, ExpertPart part) { return outer_[expert][static_cast<int>(part)]; }
  float outer(int64_t expert, ExpertPart part) const { return outer_[expert][static_cast<int>(part)]; }

  // The layer's static activation scale for x (down = false) or h: the largest that was set, 1.0 where none was.
  float InputScale(bool down) const;
  void SetInputScale(int64_t expert, ExpertPart part, float scale) { input_scale_[expert][static_cast<int>(part)] = scale; }

 private:
  ExpertsSpec spec_;
  KernelSet kernels_;
  std::vector<std::array<PartLayout, 3>> layouts_;
  std::vector<std::array<float, 3>> outer_;
  std::vector<std::array<float, 3>> input_scale_;  // 0: not set
  tensor::Buffer buffer_;
};

// False where no kernel reads this format.
bool KindOf(const Format& format, WeightKind* kind);

// Layouts of all parts, and the bytes of all tiles.
int64_t LayOut(const ExpertsSpec& spec, std::vector<std::array<PartLayout, 3>>& layouts);

// Writes one matrix into its tiles (pack.cc). kBadFile where an FP8 element is not finite: the kernels' decoding has no such values.
base::Status PackTiles(const QuantizedMatrix& matrix, const PartLayout& layout, std::byte* tile0);

}  // namespace halfbyte::kernels::cpu::moe
