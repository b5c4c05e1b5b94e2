// The differential kit: runs any backend's ops over awkward shapes in every format and activation form and compares with the
// `reference` backend within the bounds below; apart from that, checks the promises that are bitwise.
//
//   #include "support/backend_compare.h"                       // in a test of DEPS hb_test_support
//   TEST(CpuBackend, Linear) { test::CompareLinear(*CreateCpuBackend({})); }
//
// Every function adds gtest failures (with a trace of the shape, format and form) and leaves the pool at the number of threads that it found.
// What the backend refuses in SupportsLinear / SupportsExperts is skipped, printed, and returned: a test should assert on the list.
//
// Bounds. u = 2^-24 is half a unit in the last place of FP32, S the sum of the magnitudes of what was added up.
//   Linear             |y - ref| <= (8 + sqrt(K)) u S. An FP32 sum of K products is off by K/2 u S at the very worst and by about
//                      sqrt(K)/2 u S in practice; a wrong element, scale or block border is off by at least S / (K 2^9).
//   Moe, kPlain        row by row, ||y - ref|| <= 1e-5 ||ref||. Where h is rounded to BF16, an h close to the middle of two BF16 values
//                      may go the other way: up to 30 % of the rows may be off by 8e-3 ||ref||.
//   Moe, kInt8Groups   the same with codes of h (steps of amax/127): 30 % of the rows up to 3e-2 ||ref||.
//   Moe, kNvfp4*       the same with codes of h (steps of a third): 30 % of the rows up to 0.3 ||ref||. Codes of x cannot flip: x is
//                      given, so its quantization has to be equal to the last bit.
//   RmsNorm, SiluMul, Qkv, AddGated   |y - ref| <= 16 u (magnitude of the row), and one unit of BF16 where the output is BF16.
//   Attention          head by head, ||y - ref|| <= 1e-5 ||ref|| where exact, 1.5e-2 where the softmax weights may be rounded.
// Absolute floor: 1e-30 (BF16 dot-product instructions flush subnormals; 1e-39 times our largest weights stays far below that).
#pragma once

#include <string>
#include <vector>

#include "kernels/api/backend.h"

namespace halfbyte::test {

using Skipped = std::vector<std::string>;  // one line for each format or experts spec that the backend does not offer

// kQuick: every format and form, but fewer and smaller shapes (a second or two; for sanitizer builds and faults that hit everywhere).
enum class Effort { kQuick, kFull };

Skipped CompareLinear(kernels::Backend& backend);
Skipped CompareMoe(kernels::Backend& backend, Effort effort = Effort::kFull);

// A row's result is bitwise the same alone, among others, with any split of the rows into prompt and generated ones (within its class)
// and with 1, 2 and 5 threads.
Skipped CheckLinearInvariance(kernels::Backend& backend);
Skipped CheckMoeInvariance(kernels::Backend& backend, Effort effort = Effort::kFull);

// moe.out.* of the reference data (an independent implementation's results), largest error 1e-5: w4a16, per token, static. Exact form, x FP32.
void CheckMoeGolden(kernels::Backend& backend);
// User case T01: gate and up with different ws2 give 23.394 in every activation form.
void CheckUnequalGateUpScales(kernels::Backend& backend);
// User case T04: an expert of zeros gives exactly 0.0 and changes nothing for its neighbour.
void CheckZeroExpert(kernels::Backend& backend);
// RmsNorm, SiluMul, AddGated over shapes, dtypes, threads and rows alone; Route with ties; Embed and GatherRows to the last bit.
void CompareSmallOps(kernels::Backend& backend);
void CompareRoute(kernels::Backend& backend);
void CompareEmbedAndGather(kernels::Backend& backend);

// Qkv and Attention over head shapes, norms, windows, sinks and cache dtypes, prompts beside generated rows.
void CompareAttention(kernels::Backend& backend);
// Bitwise: scattered blocks among NaN, any chunking of a prompt, alone or beside others, several generated rows at once, threads.
void CheckAttentionInvariance(kernels::Backend& backend);

// Which static scale counts (Backend::SetInputScale).
void CheckStaticScales(kernels::Backend& backend);

}  // namespace halfbyte::test
