#include "kernels/cpu/moe/experts.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "kernels/cpu/moe/moe.h"

namespace halfbyte::kernels::cpu {
namespace {

using base::ErrorCode;
using base::Fail;

constexpr const char* kPartNames[] = {"gate", "up", "down"};

bool KindOf(const Format& f, WeightKind* kind) {
  if (f == Format::Nvfp4()) *kind = WeightKind::kNvfp4;
  else if (f.is_fp8() && (!f.block_scale || f.block_scale == DType::kF32) && !f.is_plain()) *kind = WeightKind::kFp8;
  else if (f == Format::Bf16()) *kind = WeightKind::kBf16;
  else if (f == Format::F32()) *kind = WeightKind::kF32;
  else return false;
  return true;
}

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
  HB_CHECK(KindOf(format, &p.kind), "SupportsMoe must be asked first");
  p.n = n;
  p.k = k;
  p.tiles = RoundUp(n, multiple) / kTile;
  p.block_cols = format.block_scale ? format.block_cols : k;
  p.tile_bytes = TileBytes(p.kind, k, p.block_cols);
  return p;
}

base::Status CheckPart(const Format& f, int64_t k, int64_t expert, int part) {
  WeightKind kind;
  if (!KindOf(f, &kind)) {
    return Fail(base::Error(ErrorCode::kUnsupported, base::StrCat("expert ", expert, " ", kPartNames[part], ": no cpu kernel for ", f.ToString()))
                    .Hint("BF16, F32, FP8 and NVFP4 experts run on cpu"));
  }
  if (kind == WeightKind::kNvfp4 && k % kG != 0) {
    return Fail(ErrorCode::kUnsupported, "expert ", expert, " ", kPartNames[part], ": NVFP4 needs an inner length that is a multiple of 16, not ", k);
  }
  return {};
}

}  // namespace

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

base::Status SupportsMoe(const ExpertsSpec& spec) {
  HB_CHECK(static_cast<int64_t>(spec.formats.size()) == spec.experts, spec.formats.size(), " formats for ", spec.experts, " experts");
  for (int64_t e = 0; e < spec.experts; ++e) {
    const auto& f = spec.formats[e];
    HB_RETURN_IF_ERROR(CheckPart(f[0], spec.d, e, 0));
    HB_RETURN_IF_ERROR(CheckPart(f[1], spec.d, e, 1));
    HB_RETURN_IF_ERROR(CheckPart(f[2], spec.f, e, 2));
    if (f[0].is_nvfp4() != f[1].is_nvfp4()) {
      return Fail(base::Error(ErrorCode::kUnsupported, base::StrCat("expert ", e, ": gate is ", f[0].ToString(), " but up is ", f[1].ToString()))
                      .Hint("ignore both or neither of an expert's gate and up matrices"));
    }
  }
  return {};
}

int64_t MoeBytes(const ExpertsSpec& spec) {
  std::vector<std::array<PartLayout, 3>> layouts;
  return LayOut(spec, layouts);
}

base::Result<std::unique_ptr<ExpertsWeight>> CreateMoe(ExpertsSpec spec, const BackendOptions& options) {
  HB_RETURN_IF_ERROR(SupportsMoe(spec));
  HB_ASSIGN_OR_RETURN(KernelSet kernels, ChooseKernels(options));
  HB_ASSIGN_OR_RETURN(tensor::Buffer buffer, tensor::Buffer::Host(static_cast<size_t>(MoeBytes(spec))));
  return std::make_unique<CpuExperts>(std::move(spec), kernels, std::move(buffer));
}

base::Status PackMoe(ExpertsWeight& weight, int64_t expert, ExpertPart part, const QuantizedMatrix& matrix) {
  auto& w = static_cast<CpuExperts&>(weight);
  HB_CHECK(0 <= expert && expert < w.spec().experts, "expert ", expert, " of ", w.spec().experts);
  const PartLayout& p = w.layout(expert, part);
  const Format& format = w.spec().formats[expert][static_cast<int>(part)];
  HB_CHECK(matrix.format == format && matrix.rows == p.n && matrix.cols == p.k, "expert ", expert, " ", kPartNames[static_cast<int>(part)], ": packed as ",
           matrix.format.ToString(), " ", matrix.rows, " x ", matrix.cols, ", planned as ", format.ToString(), " ", p.n, " x ", p.k);
  if (p.kind == WeightKind::kNvfp4) w.outer(expert, part) = *matrix.outer;
  PackTiles(matrix, p, w.tile(p, 0));
  return {};
}

base::Status SetMoeInputScale(ExpertsWeight& weight, int64_t expert, ExpertPart part, float input_scale) {
  auto& w = static_cast<CpuExperts&>(weight);
  HB_CHECK(0 <= expert && expert < w.spec().experts, "expert ", expert, " of ", w.spec().experts);
  if (!(input_scale > 0) || input_scale > std::numeric_limits<float>::max()) {
    return Fail(ErrorCode::kBadFile, "expert ", expert, " ", kPartNames[static_cast<int>(part)], ": input_scale ", input_scale, " is not a positive number");
  }
  w.SetInputScale(expert, part, input_scale);
  return {};
}

base::Result<std::vector<std::pair<std::string, std::string>>> MoeKernels(const BackendOptions& options) {
  HB_ASSIGN_OR_RETURN(const KernelSet set, ChooseKernels(options));
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& row : set.gemm) {
    for (const MoeKernel* k : row) {
      std::pair<std::string, std::string> entry("moe_gemm", k ? k->name : "");
      if (k && std::find(out.begin(), out.end(), entry) == out.end()) out.push_back(std::move(entry));
    }
  }
  return out;
}

}  // namespace halfbyte::kernels::cpu
