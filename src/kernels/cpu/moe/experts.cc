#include "kernels/cpu/moe/experts.h"

#include <algorithm>

#include "base/check.h"

namespace halfbyte::kernels::cpu::moe {
namespace {

int64_t TileBytes(WeightKind kind, int64_t k, int64_t block_cols) {
  const int64_t kp = RoundUp(k, kG);
  switch (kind) {
    case WeightKind::kNvfp4: return Nvfp4TileBytes(k);
    case WeightKind::kFp8: return (k + block_cols - 1) / block_cols * kTile * 4 + kp * kTile;
    case WeightKind::kBf16: return kp * kTile * 2;
    case WeightKind::kF32: return kp * kTile * 4;
  }
  return 0;
}

PartLayout Part(const Format& format, int64_t n, int64_t k, int64_t multiple) {
  PartLayout p;
  HB_CHECK(KindOf(format, &p.kind), "SupportsMoe was to be asked about ", format.ToString());
  p.n = n;
  p.k = k;
  p.tiles = RoundUp(n, multiple) / kTile;
  p.block_cols = format.block_scale ? format.block_cols : k;
  p.e5m2 = format.elem == DType::kF8E5M2;
  p.tile_bytes = TileBytes(p.kind, k, p.block_cols);
  return p;
}

}  // namespace

bool KindOf(const Format& f, WeightKind* kind) {
  if (f == Format::Nvfp4()) *kind = WeightKind::kNvfp4;
  else if (f.is_fp8() && (!f.block_scale || f.block_scale == DType::kF32) && !f.is_plain()) *kind = WeightKind::kFp8;
  else if (f == Format::Bf16()) *kind = WeightKind::kBf16;
  else if (f == Format::F32()) *kind = WeightKind::kF32;
  else return false;
  return true;
}

int64_t LayOut(const ExpertsSpec& spec, std::vector<std::array<PartLayout, 3>>& layouts) {
  int64_t offset = 0;
  layouts.resize(static_cast<size_t>(spec.experts));
  for (int64_t e = 0; e < spec.experts; ++e) {
    auto& [gate, up, down] = layouts[e];
    gate = Part(spec.formats[e][0], spec.f, spec.d, kTile);
    up = Part(spec.formats[e][1], spec.f, spec.d, kTile);
    down = Part(spec.formats[e][2], spec.d, spec.f, kPair);
    gate.stride = up.stride = gate.tile_bytes + up.tile_bytes;
    gate.offset = offset;
    up.offset = offset + gate.tile_bytes;
    down.offset = offset + gate.tiles * gate.stride;
    down.stride = down.tile_bytes;
    offset = down.offset + down.tiles * down.stride;
  }
  return offset;
}

CpuExperts::CpuExperts(ExpertsSpec spec, KernelSet kernels, tensor::Buffer buffer)
    : spec_(std::move(spec)), kernels_(kernels), buffer_(std::move(buffer)) {
  LayOut(spec_, layouts_);
  outer_.assign(layouts_.size(), {1.0f, 1.0f, 1.0f});
  input_scale_.assign(layouts_.size(), {0.0f, 0.0f, 0.0f});
}

float CpuExperts::InputScale(bool down) const {
  float scale = 0;
  for (const auto& [of_gate, of_up, of_down] : input_scale_) scale = std::max(scale, down ? of_down : std::max(of_gate, of_up));
  return scale > 0 ? scale : 1.0f;
}

void CpuExperts::CopyFrom(const ExpertsWeight& same) {
  const auto& other = static_cast<const CpuExperts&>(same);
  HB_CHECK(spec_.formats == other.spec_.formats, "experts of another shape or format");
  buffer_.CopyHost(other.buffer_);
  outer_ = other.outer_;
  input_scale_ = other.input_scale_;
}

}  // namespace halfbyte::kernels::cpu::moe
