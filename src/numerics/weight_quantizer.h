// From a matrix of weights to NVFP4: which contract, which FP32 scale, and the whole matrix block by block.
//
// The FP32 scale is made once for a group of matrices (gate and up of one expert share theirs; down stands alone): take Amax of each,
// the larger one, and GlobalScaleFor. Then quantize each matrix with that scale. The result does not depend on how rows are split.
#pragma once

#include <cstdint>
#include <span>

#include "numerics/block_quantizer.h"

namespace halfbyte::numerics {

enum class WeightMethod : uint8_t {
  kFourOverSix,          // load-time contract: two candidates a block, FlashInfer's arithmetic (reference-behaviour 1.5)
  kPlain,                // the same arithmetic without a search (reference-behaviour 1.7, exact)
  kModelopt,             // what ModelOpt writes by default: its dynamic path (numerics-and-formats 2.1)
  kModeloptStatic,       // ModelOpt's static order with the plain block amax (2.2)
  kModeloptFourOverSix,  // static order, M = 256, two candidates (2.9)
  kModeloptSweep,        // static order, all 126 scales (2.2)
};

struct WeightContract {
  WeightMethod method = WeightMethod::kFourOverSix;
  float m = kE4m3Max;                        // the block scale that the tensor's amax is sent to: 448 or 256
  ErrorNorm norm = ErrorNorm::kMse;          // kFourOverSix only
  ErrorForm form = ErrorForm::kScaled;       // kFourOverSix only
  Flavour flavour = Flavour::kCuda;          // ModelOpt's methods only

  // What the loader makes: "4over6", MSE, 448, exact arithmetic, error in the scaled domain.
  static constexpr WeightContract Online() { return {}; }
  static constexpr WeightContract Plain() { return {.method = WeightMethod::kPlain}; }
  static constexpr WeightContract Modelopt(Flavour f) { return {.method = WeightMethod::kModelopt, .flavour = f}; }
  static constexpr WeightContract ModeloptStatic(Flavour f) { return {.method = WeightMethod::kModeloptStatic, .flavour = f}; }
  static constexpr WeightContract ModeloptFourOverSix(Flavour f) {
    return {.method = WeightMethod::kModeloptFourOverSix, .m = 256, .flavour = f};
  }
  static constexpr WeightContract ModeloptSweep(Flavour f) { return {.method = WeightMethod::kModeloptSweep, .flavour = f}; }
  constexpr bool operator==(const WeightContract&) const = default;
};

// What stands above the blocks. Both are needed: ModelOpt's static order divides by the amax, which ws2 does not give back exactly.
struct GlobalScale {
  float amax = 0;  // largest magnitude of the group of matrices
  float ws2 = 1;   // weight_scale_2 as stored (a multiplier)
};

// rn(amax / (6 * m)). 1.0 for a zero tensor, and for an amax below 8e-36: from 7.9e-36 down 1/ws2 would be infinite.
constexpr float OnlineWs2(float amax, float m = kE4m3Max) { return amax < 8e-36f ? 1.0f : amax / (6.0f * m); }

// kCuda: rn(amax * fl(1/(6m))); kCpu: rn(amax / (6m)). 1.0 where that is zero (ModelOpt has no answer there: 0/0 scales).
constexpr float ModeloptWs2(float amax, Flavour flavour, float m = kE4m3Max) {
  const float ws2 = flavour == Flavour::kCuda ? amax * (1.0f / (6.0f * m)) : amax / (6.0f * m);
  return ws2 == 0 ? 1.0f : ws2;
}

// amax: finite, >= 0.
GlobalScale GlobalScaleFor(const WeightContract& contract, float amax);

struct AmaxResult {
  float amax = 0;         // over the finite values
  int64_t nan_count = 0;  // any of these two above zero: the matrix must be refused (with layer, expert, tensor and the count)
  int64_t inf_count = 0;
  bool operator==(const AmaxResult&) const = default;
};

AmaxResult Amax(std::span<const float> x);
AmaxResult Merge(const AmaxResult& a, const AmaxResult& b);

// One block under any contract. A tensor whose amax is zero (static order would divide by it) is quantized by the dynamic rule.
Nvfp4Block QuantizeBlock(const WeightContract& contract, BlockInput x, const GlobalScale& scale);

// x F32 [rows, cols] finite, row-major; cols % 16 == 0 (HB_CHECK: the load plan refuses such a tensor by name before).
// codes U8 [rows, cols/2], low nibble = even column; scales U8 (E4M3) [rows, cols/16], linear.
void QuantizeMatrix(const WeightContract& contract, const float* x, int64_t rows, int64_t cols, const GlobalScale& scale,
                    uint8_t* codes, uint8_t* scales);

}  // namespace halfbyte::numerics
