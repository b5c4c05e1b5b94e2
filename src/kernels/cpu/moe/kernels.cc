#include "kernels/cpu/moe/kernels.h"

#include "platform/cpu_features.h"

namespace halfbyte::kernels::cpu::moe {
namespace {

using base::ErrorCode;
using base::Fail;

struct IsaName {
  const char* name;
  Isa isa;
};
constexpr IsaName kIsaNames[] = {
    {"avx2", Isa::kAvx2}, {"avx512", Isa::kAvx512}, {"avx512vnni", Isa::kAvx512Vnni}, {"avx512bf16", Isa::kAvx512Bf16}, {"amx", Isa::kAmx}};

bool Runs(Isa isa) {
  const platform::CpuFeatures& cpu = platform::Cpu();
  switch (isa) {
    case Isa::kAvx2: return cpu.HasAvx2();
    case Isa::kAvx512: return cpu.HasAvx512();
    case Isa::kAvx512Vnni: return cpu.HasAvx512Vnni();
    case Isa::kAvx512Bf16: return cpu.HasAvx512Bf16();
    case Isa::kAmx: return cpu.HasAmxBf16();
  }
  return false;
}

// Whether rows of a class can be given in this format. A plain format takes a quantized class as decoded values: NVFP4 values are exact in BF16 and
// FP32; an INT8 value times its scale is rounded once to FP32 (in BF16 it would lose its meaning).
bool Suits(RowFormat format, RowClass rows) {
  switch (rows) {
    case RowClass::kF32: return format == RowFormat::kF32;
    case RowClass::kBf16: return format == RowFormat::kBf16 || format == RowFormat::kF32;
    case RowClass::kInt8: return format == RowFormat::kInt8 || format == RowFormat::kF32;
    case RowClass::kNvfp4: return format != RowFormat::kInt8;
  }
  return false;
}

// What the user asked for: named kernels win, and nothing newer than `newest` is used besides.
struct Wishes {
  Isa newest = Isa::kAmx;
  std::vector<const MoeKernel*> named;
  bool Named(const MoeKernel* k) const {
    for (const MoeKernel* n : named) if (n == k) return true;
    return false;
  }
};

base::Result<Wishes> ReadWishes(const BackendOptions& options, const std::vector<const MoeKernel*>& available) {
  Wishes wishes;
  for (const auto& [op, name] : options.kernels) {
    if (op != "moe_gemm") continue;
    bool known = false;
    for (const IsaName& i : kIsaNames) {
      if (name == i.name && Runs(i.isa)) { wishes.newest = i.isa; known = true; }
    }
    for (const MoeKernel* k : available) {
      if (name == k->name) { wishes.named.push_back(k); known = true; }
    }
    if (known) continue;
    std::string names;
    for (const IsaName& i : kIsaNames) if (Runs(i.isa)) names += base::StrCat(names.empty() ? "" : ", ", i.name);
    for (const MoeKernel* k : available) names += base::StrCat(", ", k->name);
    return Fail(base::Error(ErrorCode::kInvalidArgument, base::StrCat("--kernel moe_gemm=", name, ": no such kernel on this machine"))
                    .Hint(base::StrCat("use one of ", names)));
  }
  return wishes;
}

int Rank(const MoeKernel& k, bool prompt) {
  return (prompt ? k.prompt : k.generated) - (k.bf16_dot && !platform::Cpu().full_rate_bf16_dot ? 3 : 0);
}

const MoeKernel* Best(const std::vector<const MoeKernel*>& available, const Wishes& wishes, WeightKind weight, RowClass rows, bool prompt) {
  const MoeKernel* best = nullptr;
  int best_rank = 0;
  for (const MoeKernel* k : available) {
    const bool named = wishes.Named(k);
    if (k->weight != weight || !Suits(k->rows, rows) || (!named && k->isa > wishes.newest)) continue;
    const int rank = Rank(*k, prompt) + (named ? 1000 : 0);
    if (!best || rank > best_rank) { best = k; best_rank = rank; }
  }
  return best;
}

}  // namespace

std::vector<const MoeKernel*> AvailableKernels() {
  std::vector<const MoeKernel*> out;
  for (const MoeKernelList& list : {MoeKernelsAvx2(), MoeKernelsInt8Avx2(), MoeKernelsAvx512(), MoeKernelsAvx512Vnni(), MoeKernelsAvx512Bf16(),
                                    MoeKernelsAmx()}) {
    for (int64_t i = 0; i < list.count; ++i) {
      if (Runs(list.kernels[i].isa)) out.push_back(list.kernels + i);
    }
  }
  return out;
}

base::Result<KernelSet> ChooseKernels(const BackendOptions& options) {
  if (!Runs(Isa::kAvx2)) {
    return Fail(base::Error(ErrorCode::kUnsupported, "the cpu backend needs a processor with AVX2, FMA and F16C").Hint("--device reference runs anywhere"));
  }
  const std::vector<const MoeKernel*> available = AvailableKernels();
  HB_ASSIGN_OR_RETURN(const Wishes wishes, ReadWishes(options, available));
  KernelSet set;
  for (int w = 0; w < kWeightKinds; ++w) {
    for (int r = 0; r < kRowClasses; ++r) {
      const auto weight = static_cast<WeightKind>(w);
      const auto rows = static_cast<RowClass>(r);
      // Only NVFP4 weights meet quantized rows.
      if (weight != WeightKind::kNvfp4 && (rows == RowClass::kInt8 || rows == RowClass::kNvfp4)) continue;
      for (bool prompt : {false, true}) set.gemm[prompt][w][r] = Best(available, wishes, weight, rows, prompt);
    }
  }
  const bool avx512 = Runs(Isa::kAvx512) && wishes.newest >= Isa::kAvx512;
  set.steps = avx512 ? MoeStepsAvx512() : MoeStepsAvx2();
  return set;
}

}  // namespace halfbyte::kernels::cpu::moe
