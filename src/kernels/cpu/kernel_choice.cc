#include "kernels/cpu/kernel_choice.h"

namespace halfbyte::kernels::cpu {
namespace {

using base::ErrorCode;

// All kernels of a table kind that this machine can run, oldest instruction set first.
template <typename Kernel>
std::vector<const Kernel*> Usable(const platform::CpuFeatures& cpu,
                                  std::initializer_list<std::span<const Kernel* const>> tables) {
  std::vector<const Kernel*> out;
  for (auto table : tables)
    for (const Kernel* k : table)
      if (k->available(cpu)) out.push_back(k);
  return out;
}

void Take(KernelChoice& c, const LinearKernel* k) {
  for (const bool prompt : {false, true}) {
    if (!(prompt ? k->run_prompt : k->run_generated)) continue;
    auto& of_kind = c.linear[prompt][static_cast<int>(k->kind)];
    of_kind[true] = k;
    if (k->act == RowType::kF32) of_kind[false] = k;
  }
}
void Take(KernelChoice& c, const RowKernels* k) { c.rows = k; }
void Take(KernelChoice& c, const AttentionKernel* k) {
  c.attention = k;
  if (!k->rounded) c.attention_exact = k;
}

// Intel's vdpbf16ps takes two cycles for 32 products, its FMA half a cycle for 16: there the FP32 kernels are twice as fast.
bool IsDefault(const RowKernels*, const platform::CpuFeatures&) { return true; }
template <typename Kernel>
bool IsDefault(const Kernel* k, const platform::CpuFeatures& cpu) {
  return !k->bf16_dot || cpu.full_rate_bf16_dot;
}

// The newest of all, then what the user named.
template <typename Kernel>
base::Status Choose(KernelChoice& c, const platform::CpuFeatures& cpu, const std::vector<const Kernel*>& usable,
                    std::string_view op, const BackendOptions& options) {
  for (const Kernel* k : usable)
    if (IsDefault(k, cpu)) Take(c, k);
  for (const auto& [key, name] : options.kernels) {
    if (key != op) continue;
    bool found = false;
    for (const Kernel* k : usable)
      if (k->name == name || k->machine == name) {
        Take(c, k);
        found = true;
      }
    if (found) continue;
    std::string names;
    for (const Kernel* k : usable) names += std::string(names.empty() ? "" : ", ") + k->name;
    return base::Fail(ErrorCode::kInvalidArgument, "no kernel ", name, " for ", op, " on this machine; it can run: ", names);
  }
  return {};
}

}  // namespace

std::vector<std::pair<std::string, std::string>> KernelChoice::Names() const {
  std::vector<std::pair<std::string, std::string>> out;
  auto add = [&](const char* op, const char* name) {
    if (out.empty() || out.back() != std::pair<std::string, std::string>(op, name)) out.emplace_back(op, name);
  };
  for (int kind = 0; kind < kLinearKinds; ++kind)
    for (const LinearKernel* k : {linear[true][kind][true], linear[false][kind][true], linear[false][kind][false]}) add("linear", k->name);
  add("attention", attention->name);
  add("attention", attention_exact->name);
  add("rows", rows->name);
  return out;
}

base::Result<KernelChoice> ChooseKernels(const BackendOptions& options, const platform::CpuFeatures& cpu) {
  if (!cpu.HasAvx2())
    return base::Fail(
        base::Error(ErrorCode::kUnsupported, "the cpu backend needs AVX2, FMA and F16C; this processor has: " + cpu.ToString())
            .Hint("use --device reference, which runs anywhere"));
  KernelChoice c;
  HB_RETURN_IF_ERROR(Choose(c, cpu, Usable<LinearKernel>(cpu, {Avx2Linear(), Avx512Linear(), AmxLinear()}), "linear", options));
  HB_RETURN_IF_ERROR(Choose(c, cpu, Usable<RowKernels>(cpu, {Avx2Rows(), Avx512Rows()}), "rows", options));
  HB_RETURN_IF_ERROR(Choose(c, cpu, Usable<AttentionKernel>(cpu, {Avx2Attention(), Avx512Attention()}), "attention", options));
  return c;
}

std::vector<CpuKernel> UsableDenseKernels(const platform::CpuFeatures& cpu) {
  const Format formats[] = {Format::F32(), Format::Bf16(), Format::Fp8Block(128, 128), Format::Nvfp4()};  // by LinearKind
  std::vector<CpuKernel> out;
  for (const LinearKernel* k : Usable<LinearKernel>(cpu, {Avx2Linear(), Avx512Linear(), AmxLinear()}))
    out.push_back({"linear", k->name, formats[static_cast<int>(k->kind)], ActivationForm::kPlain, k->kind == LinearKind::kF32 ? DType::kF32 : DType::kBF16});
  for (const AttentionKernel* k : Usable<AttentionKernel>(cpu, {Avx2Attention(), Avx512Attention()}))
    out.push_back({"attention", k->name, Format::Bf16(), ActivationForm::kPlain, DType::kBF16, k->rounded});
  return out;
}

}  // namespace halfbyte::kernels::cpu
