// Proves that the project's -ffp-contract=off matters. This program's copy of the numerics was compiled with -mfma
// -ffp-contract=fast; if every fingerprint still came out right, nothing would protect the promised bytes, or the build's flag would
// be superfluous. So this test passes only if contraction breaks them.
#include <gtest/gtest.h>

#include <vector>

#include "numerics/weight_quantizer.h"
#include "unit/numerics/test_matrices.h"

namespace halfbyte::numerics {
namespace {

using namespace test;

TEST(Contraction, BreaksThePromisedBytes) {
  if (!__builtin_cpu_supports("fma")) GTEST_SKIP() << "this processor has no fused multiply-add";
  const std::vector<float> w = T17Values(4096);
  std::vector<uint8_t> codes(w.size() / 2), scales(w.size() / 16);
  const GlobalScale scale = GlobalScaleFor(WeightContract::Online(), Amax(w).amax);
  QuantizeMatrix(WeightContract::Online(), w.data(), 4096, kT17Cols, scale, codes.data(), scales.data());
  EXPECT_TRUE(Fnv(codes) != kLargeOnlineCodes || Fnv(scales) != kLargeOnlineScales)
      << "the bytes are right although products and sums were merged: then the build's -ffp-contract=off proves nothing";
}

}  // namespace
}  // namespace halfbyte::numerics
