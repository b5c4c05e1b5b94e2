// Every expert kernel that this machine can run against `reference`, and the bitwise promises.
#include <gtest/gtest.h>

#include "platform/cpu_features.h"
#include "support/backend_compare.h"
#include "support/compare_rows.h"
#include "support/device_data.h"
#include "support/random_data.h"
#include "support/weight_data.h"
#include "unit/kernels_cpu/moe_only_backend.h"

namespace halfbyte::test {
namespace {

struct Choice {
  const char* name;
  const char* isa;                     // needed
  std::vector<std::string> kernels;    // as in --kernel moe_gemm=...
};
// The kernels of one instruction set and what is older, and kernels by name where the machine may choose another.
const Choice kChoices[] = {
    {"avx2", "avx2", {"avx2"}},
    {"avx512", "avx512", {"avx512"}},
    {"own_choice", "avx2", {}},
    {"bf16_panels", "avx512bf16", {"moe_gemm_nvfp4_bf16_avx512bf16", "moe_gemm_bf16_bf16_avx512bf16"}},
    {"amx", "amx", {"moe_gemm_nvfp4_bf16_amx", "moe_gemm_bf16_bf16_amx"}},
};

class MoeKernelTest : public testing::TestWithParam<Choice> {
 protected:
  static bool Runs(const std::string& isa) {
    const auto& cpu = platform::Cpu();
    return isa == "avx2" ? cpu.HasAvx2() : isa == "avx512" ? cpu.HasAvx512() : isa == "avx512bf16" ? cpu.HasAvx512Bf16() : cpu.HasAmxBf16();
  }
  void SetUp() override {
    if (!Runs(GetParam().isa)) GTEST_SKIP() << "this machine has no " << GetParam().isa;
  }
};

// The whole set of shapes for the machine's own choice, which mixes kernels; the small one for the others, so that all stay within a minute.
Effort EffortFor(const Choice& choice) { return choice.kernels.empty() ? Effort::kFull : Effort::kQuick; }

TEST_P(MoeKernelTest, AgreesWithReference) {
  MoeOnlyBackend backend(GetParam().kernels);
  for (const auto& [op, name] : backend.Kernels()) std::cout << op << " " << name << "\n";
  EXPECT_TRUE(CompareMoe(backend, EffortFor(GetParam())).empty());
}

TEST_P(MoeKernelTest, ResultsDoNotDependOnCompany) {
  MoeOnlyBackend backend(GetParam().kernels);
  EXPECT_TRUE(CheckMoeInvariance(backend, EffortFor(GetParam())).empty());
}

TEST_P(MoeKernelTest, GoldenResultsAndScales) {
  MoeOnlyBackend backend(GetParam().kernels);
  CheckMoeGolden(backend);
  CheckUnequalGateUpScales(backend);
  CheckZeroExpert(backend);
  CheckStaticScales(backend);
}

// Inner lengths beyond the pieces in which tiles are decoded (up to 512, with a remainder of 16) and more rows than an item has (192): where the other
// shapes of the kit do not reach.
struct LongLayer {
  static constexpr int64_t kD = 1104, kF = 592, kExperts = 3, kTopK = 2, kRows = 270;
  kernels::ExpertsSpec spec{.experts = kExperts, .d = kD, .f = kF};
  std::vector<std::array<WeightData, 3>> weights;
  std::vector<float> x = Random(5).Normals(kRows * kD), slot_weights = Random(6).Normals(kRows * kTopK);
  std::vector<int32_t> ids;

  LongLayer(const tensor::Format& format, kernels::ActivationForm form, bool round_hidden) {
    spec.activations = form;
    spec.round_hidden = round_hidden;
    spec.formats.assign(kExperts, {format, format, format});
    for (uint64_t e = 0; e < kExperts; ++e)
      weights.push_back({RandomWeight(format, kF, kD, 3 * e), RandomWeight(format, kF, kD, 3 * e + 1), RandomWeight(format, kD, kF, 3 * e + 2)});
    for (float& v : x) v = RoundBf16(v);
    for (int64_t t = 0; t < kRows; ++t) for (int32_t id : {0, t % 9 == 0 ? 2 : 1}) ids.push_back(id);
  }

  std::vector<float> Run(MoeOnlyBackend& backend, bool prompt) const {
    auto experts = std::move(*backend.CreateExperts(spec));
    for (int64_t e = 0; e < kExperts; ++e)
      for (auto part : {kernels::ExpertPart::kGate, kernels::ExpertPart::kUp, kernels::ExpertPart::kDown})
        HB_CHECK(backend.PackExpert(*experts, e, part, weights[e][static_cast<int>(part)].View()).has_value());
    DeviceMatrix in(backend, tensor::DType::kBF16, kRows, kD, x), out(backend, tensor::DType::kF32, kRows, kD);
    backend.Moe({.x = in.view(), .prompt_rows = prompt ? kRows : 0, .experts = experts.get(), .top_k = kTopK, .ids = ids, .weights = slot_weights, .out = out.view()});
    return out.Read();
  }
};

TEST_P(MoeKernelTest, LongInnerLengthsAndManyRows) {
  using kernels::ActivationForm;
  MoeOnlyBackend mine(GetParam().kernels), plain({"moe_gemm_nvfp4_f32_avx2", "moe_gemm_bf16_f32_avx2"});
  for (const auto& format : {tensor::Format::Nvfp4(), tensor::Format::Bf16()})
    for (const auto form : {ActivationForm::kPlain, ActivationForm::kInt8Groups, ActivationForm::kNvfp4PerToken}) {
      if (!format.is_nvfp4() && form != ActivationForm::kPlain) continue;
      const LongLayer layer(format, form, true);
      // The bounds of backend_compare.h: an h beside a border of BF16 or of its codes may go the other way.
      const RowBound bound{1e-5, form == ActivationForm::kPlain ? 8e-3 : form == ActivationForm::kInt8Groups ? 3e-2 : 0.3, 0.3};
      for (bool prompt : {true, false}) {
        SCOPED_TRACE(base::StrCat(format.ToString(), ", form ", static_cast<int>(form), prompt ? ", prompt rows" : ", generated rows"));
        ExpectRowsClose(layer.Run(mine, prompt), layer.Run(plain, prompt), LongLayer::kRows, bound);
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Kernels, MoeKernelTest, testing::ValuesIn(kChoices), [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace halfbyte::test
