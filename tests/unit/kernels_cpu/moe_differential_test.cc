// Every expert kernel that this machine can run against `reference`, and the bitwise promises.
#include <gtest/gtest.h>

#include "platform/cpu_features.h"
#include "support/backend_compare.h"
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

TEST_P(MoeKernelTest, AgreesWithReference) {
  MoeOnlyBackend backend(GetParam().kernels);
  for (const auto& [op, name] : backend.Kernels()) std::cout << op << " " << name << "\n";
  EXPECT_TRUE(CompareMoe(backend).empty());
}

TEST_P(MoeKernelTest, ResultsDoNotDependOnCompany) {
  MoeOnlyBackend backend(GetParam().kernels);
  EXPECT_TRUE(CheckMoeInvariance(backend).empty());
}

INSTANTIATE_TEST_SUITE_P(Kernels, MoeKernelTest, testing::ValuesIn(kChoices), [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace halfbyte::test
