// Every dense kernel that this machine can run against `reference`, and the bitwise promises.
#include <gtest/gtest.h>

#include "kernels/cpu/cpu_backend.h"
#include "platform/cpu_features.h"
#include "support/backend_compare.h"

namespace halfbyte::test {
namespace {

// Dense FP16 becomes BF16 while loading.
void ExpectOnlyF16Skipped(const Skipped& skipped) {
  ASSERT_EQ(skipped.size(), 1u);
  EXPECT_NE(skipped[0].find("F16"), std::string::npos) << skipped[0];
}

// The kernels of one machine; what it has no kernel for keeps the newest one.
class DenseKernelTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto& cpu = platform::Cpu();
    std::string isa = GetParam();
    if (!(isa == "avx2" ? cpu.HasAvx2() : isa == "avx512" ? cpu.HasAvx512() : isa == "avx512bf16" ? cpu.HasAvx512Bf16() : cpu.HasAmxBf16()))
      GTEST_SKIP() << "this machine has no " << isa;
    kernels::BackendOptions options;
    for (const char* op : {"linear", "rows", "attention"})
      if (op == std::string("linear") || (isa != "amx" && (isa != "avx512bf16" || op == std::string("attention")))) options.kernels.emplace_back(op, isa);
    auto made = kernels::CreateCpuBackend(options);
    ASSERT_TRUE(made.has_value()) << made.error().ToString();
    backend_ = std::move(*made);
    for (const auto& [op, name] : backend_->Kernels()) std::cout << op << " " << name << "\n";
  }
  std::unique_ptr<kernels::Backend> backend_;
};

TEST_P(DenseKernelTest, LinearAgreesWithReference) { ExpectOnlyF16Skipped(CompareLinear(*backend_)); }
TEST_P(DenseKernelTest, LinearResultsDoNotDependOnCompany) { ExpectOnlyF16Skipped(CheckLinearInvariance(*backend_)); }
TEST_P(DenseKernelTest, AttentionAgreesWithReference) { CompareAttention(*backend_); }
TEST_P(DenseKernelTest, AttentionResultsDoNotDependOnCompany) { CheckAttentionInvariance(*backend_); }
TEST_P(DenseKernelTest, SmallOpsAgreeWithReference) {
  CompareSmallOps(*backend_);
  CompareRoute(*backend_);
  CompareEmbedAndGather(*backend_);
}

INSTANTIATE_TEST_SUITE_P(Isa, DenseKernelTest, testing::Values("avx2", "avx512", "avx512bf16", "amx"),
                         [](const auto& info) { return std::string(info.param); });

TEST(CpuBackend, RefusesUnknownKernels) {
  auto made = kernels::CreateCpuBackend({.kernels = {{"linear", "linear_bf16_bf16_abacus"}}});
  ASSERT_FALSE(made.has_value());
  EXPECT_NE(made.error().ToString().find("linear_bf16_f32_avx2"), std::string::npos) << made.error().ToString();
  EXPECT_FALSE(kernels::CreateCpuBackend({.kernels = {{"conjure", "x"}}}).has_value());
}

}  // namespace
}  // namespace halfbyte::test
