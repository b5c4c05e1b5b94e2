// The differential kit run on the reference backend itself: it must agree with itself to the last bit, and the kit must not complain.
#include <gtest/gtest.h>

#include "kernels/reference/reference_backend.h"
#include "support/backend_compare.h"

namespace halfbyte::test {
namespace {

TEST(ReferenceBackend, LinearAgreesWithItself) { EXPECT_EQ(CompareLinear(*kernels::CreateReferenceBackend({})), Skipped{}); }
TEST(ReferenceBackend, LinearIsInvariant) { EXPECT_EQ(CheckLinearInvariance(*kernels::CreateReferenceBackend({})), Skipped{}); }
TEST(ReferenceBackend, MoeAgreesWithItself) { EXPECT_EQ(CompareMoe(*kernels::CreateReferenceBackend({})), Skipped{}); }
TEST(ReferenceBackend, MoeIsInvariant) { EXPECT_EQ(CheckMoeInvariance(*kernels::CreateReferenceBackend({})), Skipped{}); }

TEST(ReferenceBackend, MoeGolden) { CheckMoeGolden(*kernels::CreateReferenceBackend({})); }
TEST(ReferenceBackend, T01UnequalGateAndUpScales) { CheckUnequalGateUpScales(*kernels::CreateReferenceBackend({})); }
TEST(ReferenceBackend, T04ZeroExpert) { CheckZeroExpert(*kernels::CreateReferenceBackend({})); }
TEST(ReferenceBackend, StaticScaleIsTheLayersLargest) { CheckStaticScales(*kernels::CreateReferenceBackend({})); }
TEST(ReferenceBackend, SmallOps) { CompareSmallOps(*kernels::CreateReferenceBackend({})); }
TEST(ReferenceBackend, Route) { CompareRoute(*kernels::CreateReferenceBackend({})); }
TEST(ReferenceBackend, EmbedAndGather) { CompareEmbedAndGather(*kernels::CreateReferenceBackend({})); }
TEST(ReferenceBackend, Attention) { CompareAttention(*kernels::CreateReferenceBackend({})); }
TEST(ReferenceBackend, AttentionIsInvariant) { CheckAttentionInvariance(*kernels::CreateReferenceBackend({})); }

}  // namespace
}  // namespace halfbyte::test
