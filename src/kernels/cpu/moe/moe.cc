#include "kernels/cpu/moe/moe.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "kernels/cpu/moe/experts.h"
#include "kernels/cpu/moe/run.h"

namespace halfbyte::kernels::cpu {
namespace {

using base::ErrorCode;
using base::Fail;
using moe::CpuExperts;

constexpr const char* kPartNames[] = {"gate", "up", "down"};

base::Status CheckPart(const Format& f, int64_t k, int64_t expert, int part) {
  moe::WeightKind kind;
  if (!moe::KindOf(f, &kind)) {
    return Fail(base::Error(ErrorCode::kUnsupported, base::StrCat("expert ", expert, " ", kPartNames[part], ": no cpu kernel for ", f.ToString()))
                    .Hint("BF16, F32, FP8 and NVFP4 experts run on cpu"));
  }
  if (kind == moe::WeightKind::kNvfp4 && k % moe::kG != 0) {
    return Fail(ErrorCode::kUnsupported, "expert ", expert, " ", kPartNames[part], ": NVFP4 needs an inner length that is a multiple of 16, not ", k);
  }
  return {};
}

}  // namespace

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
  std::vector<std::array<moe::PartLayout, 3>> layouts;
  return moe::LayOut(spec, layouts);
}

base::Result<std::unique_ptr<ExpertsWeight>> CreateMoe(ExpertsSpec spec, const BackendOptions& options) {
  HB_RETURN_IF_ERROR(SupportsMoe(spec));
  HB_ASSIGN_OR_RETURN(moe::KernelSet kernels, moe::ChooseKernels(options));
  HB_ASSIGN_OR_RETURN(tensor::Buffer buffer, tensor::Buffer::Host(static_cast<size_t>(MoeBytes(spec))));
  return std::make_unique<CpuExperts>(std::move(spec), kernels, std::move(buffer));
}

base::Status PackMoe(ExpertsWeight& weight, int64_t expert, ExpertPart part, const QuantizedMatrix& matrix) {
  auto& w = static_cast<CpuExperts&>(weight);
  HB_CHECK(0 <= expert && expert < w.spec().experts, "expert ", expert, " of ", w.spec().experts);
  const moe::PartLayout& p = w.layout(expert, part);
  const Format& format = w.spec().formats[expert][static_cast<int>(part)];
  HB_CHECK(matrix.format == format && matrix.rows == p.n && matrix.cols == p.k, "expert ", expert, " ", kPartNames[static_cast<int>(part)], ": packed as ",
           matrix.format.ToString(), " ", matrix.rows, " x ", matrix.cols, ", planned as ", format.ToString(), " ", p.n, " x ", p.k);
  if (p.kind == moe::WeightKind::kNvfp4) w.outer(expert, part) = *matrix.outer;
  if (auto packed = moe::PackTiles(matrix, p, w.tile(p, 0)); !packed) {
    return Fail(std::move(packed).error().At(base::StrCat("expert ", expert, " ", kPartNames[static_cast<int>(part)])));
  }
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
  HB_ASSIGN_OR_RETURN(const moe::KernelSet set, moe::ChooseKernels(options));
  std::vector<std::pair<std::string, std::string>> out;
  for (int w = 0; w < moe::kWeightKinds; ++w) {
    for (int r = 0; r < moe::kRowClasses; ++r) {
      for (bool prompt : {true, false}) {
        const moe::MoeKernel* k = set.For(static_cast<moe::WeightKind>(w), static_cast<moe::RowClass>(r), prompt);
        std::pair<std::string, std::string> entry("moe_gemm", k ? k->name : "");
        if (k && std::find(out.begin(), out.end(), entry) == out.end()) out.push_back(std::move(entry));
      }
    }
  }
  return out;
}

void RunMoe(const MoeOp& op) { moe::Run(op); }

std::vector<CpuKernel> UsableMoeKernels() {
  std::vector<CpuKernel> out;
  for (const moe::MoeKernel* k : moe::AvailableKernels()) {
    CpuKernel entry{"moe_gemm", k->name, Format::Nvfp4()};
    if (k->weight == moe::WeightKind::kFp8) entry.weight = Format::Fp8Block(128, 128);
    if (k->weight == moe::WeightKind::kBf16) entry.weight = Format::Bf16();
    if (k->weight == moe::WeightKind::kF32) entry.weight = Format::F32(), entry.rows = DType::kF32;
    if (k->rows == moe::RowFormat::kInt8) entry.activations = ActivationForm::kInt8Groups;
    if (k->rows == moe::RowFormat::kNvfp4) entry.activations = ActivationForm::kNvfp4PerToken;
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace halfbyte::kernels::cpu
