// Every expert kernel that this machine can run against `reference`, and the bitwise promises.
#include <gtest/gtest.h>

#include "platform/cpu_features.h"
#include "support/backend_compare.h"
#include "unit/kernels_cpu/moe_only_backend.h"

namespace halfbyte::test {
namespace {

// The kernels of one instruction set and what is older; empty: the machine's own choice.
class MoeKernelTest : public testing::TestWithParam<const char*> {
 protected:
  static bool Runs(const std::string& isa) {
    const auto& cpu = platform::Cpu();
    return isa == "avx2" ? cpu.HasAvx2() : isa == "avx512" ? cpu.HasAvx512() : isa == "avx512vnni" ? cpu.HasAvx512Vnni() : cpu.HasAvx512Bf16();
  }
  void SetUp() override {
    if (!Runs(GetParam())) GTEST_SKIP() << "this machine has no " << GetParam();
  }
};

TEST_P(MoeKernelTest, AgreesWithReference) {
  MoeOnlyBackend backend({GetParam()});
  for (const auto& [op, name] : backend.Kernels()) std::cout << op << " " << name << "\n";
  EXPECT_TRUE(CompareMoe(backend).empty());
}

TEST_P(MoeKernelTest, ResultsDoNotDependOnCompany) {
  MoeOnlyBackend backend({GetParam()});
  EXPECT_TRUE(CheckMoeInvariance(backend).empty());
}

INSTANTIATE_TEST_SUITE_P(Isa, MoeKernelTest, testing::Values("avx2", "avx512", "avx512vnni", "avx512bf16"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace halfbyte::test
