// The table of variants, and the scalar one: it converts row by row and calls the specification.
#include "kernels/api/weight_quantizer.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/check.h"
#include "kernels/cpu/quantize/block_kernels.h"
#include "numerics/bf16.h"
#include "numerics/fp16.h"
#include "platform/cpu_features.h"

namespace halfbyte::kernels {
namespace {

using numerics::AmaxResult;
using numerics::Fp8Scales;
using numerics::GlobalScale;
using numerics::WeightContract;
using numerics::WeightMethod;
using quantize::BlockKernels;
using tensor::DType;

constexpr int64_t kChunk = 1024;  // elements converted to FP32 at a time by the scalar variant; a multiple of 16

float ElementToFloat(const void* src, DType dtype, int64_t i) {
  if (dtype == DType::kBF16) return numerics::Bf16ToFloat(static_cast<const uint16_t*>(src)[i]);
  if (dtype == DType::kF16) return numerics::Fp16ToFloat(static_cast<const uint16_t*>(src)[i]);
  return static_cast<const float*>(src)[i];
}

void CheckSource(DType dtype) {
  HB_CHECK(dtype == DType::kBF16 || dtype == DType::kF16 || dtype == DType::kF32, "weights of type ", tensor::DTypeName(dtype));
}

template <typename Use>
void ForChunks(const void* src, DType dtype, int64_t n, const Use& use) {
  std::array<float, kChunk> values;
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t count = std::min(kChunk, n - begin);
    for (int64_t i = 0; i < count; ++i) values[i] = ElementToFloat(src, dtype, begin + i);
    use(std::span<const float>(values.data(), count), begin);
  }
}

AmaxResult AmaxScalar(const void* src, DType dtype, int64_t n) {
  CheckSource(dtype);
  AmaxResult result;
  ForChunks(src, dtype, n, [&](std::span<const float> x, int64_t) { result = Merge(result, numerics::Amax(x)); });
  return result;
}

void QuantizeScalar(const WeightContract& contract, const void* src, DType dtype, int64_t rows, int64_t cols, const GlobalScale& scale,
                    uint8_t* codes, uint8_t* scales) {
  CheckSource(dtype);
  HB_CHECK(cols % numerics::kBlock == 0, cols, " columns are not a multiple of 16");
  ForChunks(src, dtype, rows * cols, [&](std::span<const float> x, int64_t begin) {
    numerics::QuantizeMatrix(contract, x.data(), 1, static_cast<int64_t>(x.size()), scale, codes + begin / 2, scales + begin / numerics::kBlock);
  });
}

void Fp8ToBf16Scalar(const uint8_t* elements, DType dtype, int64_t n, float scale, uint16_t* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = numerics::FloatToBf16(numerics::Fp8ToFloat(elements[i], dtype) * scale);
}

void F32ToBf16Scalar(const float* src, int64_t n, uint16_t* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = numerics::FloatToBf16(src[i]);
}

template <void (*kConvert)(const uint8_t*, DType, int64_t, float, uint16_t*)>
void Fp8Rows(const uint8_t* elements, DType dtype, int64_t cols, const Fp8Scales& scales, int64_t first_row, int64_t count, uint16_t* out) {
  HB_CHECK(dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2, tensor::DTypeName(dtype), " is not FP8");
  for (int64_t r = first_row; r < first_row + count; ++r) {
    const float* row_scales = scales.values + r / scales.block_rows * scales.scale_cols;
    for (int64_t c = 0; c < cols; c += scales.block_cols) {
      const int64_t n = std::min(scales.block_cols, cols - c);
      kConvert(elements + r * cols + c, dtype, n, row_scales[c / scales.block_cols], out + (r - first_row) * cols + c);
    }
  }
}

constexpr WeightQuantizer kScalar = {"scalar", AmaxScalar, QuantizeScalar, Fp8Rows<Fp8ToBf16Scalar>, F32ToBf16Scalar};

#if defined(__x86_64__)

quantize::ModeloptSearch SearchFor(const WeightContract& contract, const GlobalScale& scale) {
  const float u = numerics::ModeloptSearchScale(scale.amax, contract.flavour);
  return {scale.ws2, u, 1.0f / u, numerics::DivideBy6(scale.amax, contract.flavour), contract.flavour == numerics::Flavour::kCuda};
}

quantize::SweepTable SweepFor(const GlobalScale& scale) {
  quantize::SweepTable table{.ws2 = scale.ws2, .divisor = {}, .reciprocal = {}};
  for (int code = 1; code <= quantize::SweepTable::kLast; ++code) {
    table.divisor[code] = numerics::SweepDivisor(static_cast<uint8_t>(code), scale.amax);
    table.reciprocal[code] = 1.0f / table.divisor[code];
  }
  return table;
}

template <const BlockKernels& kKernels>
AmaxResult Amax(const void* src, DType dtype, int64_t n) {
  CheckSource(dtype);
  const uint32_t bits = kKernels.max_bits(src, dtype, n);
  const uint32_t infinity = dtype == DType::kF32 ? 0x7F800000 : dtype == DType::kBF16 ? 0x7F80 : 0x7C00;
  if (bits >= infinity) return AmaxScalar(src, dtype, n);  // to be refused: count them
  if (dtype == DType::kF32) return {.amax = std::bit_cast<float>(bits)};
  const uint16_t half = static_cast<uint16_t>(bits);
  return {.amax = ElementToFloat(&half, dtype, 0)};
}

template <const BlockKernels& kKernels>
void Quantize(const WeightContract& contract, const void* src, DType dtype, int64_t rows, int64_t cols, const GlobalScale& scale,
              uint8_t* codes, uint8_t* scales) {
  CheckSource(dtype);
  HB_CHECK(cols % numerics::kBlock == 0, cols, " columns are not a multiple of 16");
  const int64_t blocks = rows * cols / numerics::kBlock;
  const float ws2 = scale.ws2;
  const bool in_range = ws2 >= quantize::kMinWs2 && ws2 <= quantize::kMaxWs2;
  if (in_range && contract.method == WeightMethod::kFourOverSix && contract.norm == numerics::ErrorNorm::kMse &&
      contract.form == numerics::ErrorForm::kScaled) {
    const float gs = 1.0f / ws2;
    return kKernels.four_over_six(src, dtype, blocks, gs, 1.0f / gs, codes, scales);
  }
  const bool modelopt_range = ws2 >= quantize::kMinModeloptWs2 && ws2 <= quantize::MaxModeloptWs2(dtype);
  if (contract.method == WeightMethod::kModelopt && modelopt_range) {
    return kKernels.modelopt(src, dtype, blocks, ws2, codes, scales);
  }
  if (contract.method == WeightMethod::kModeloptFourOverSix && modelopt_range && scale.amax > 0) {
    return kKernels.modelopt_4over6(src, dtype, blocks, SearchFor(contract, scale), codes, scales);
  }
  if (contract.method == WeightMethod::kModeloptSweep && modelopt_range && scale.amax > 0) {
    return kKernels.modelopt_sweep(src, dtype, blocks, SweepFor(scale), codes, scales);
  }
  QuantizeScalar(contract, src, dtype, rows, cols, scale, codes, scales);
}

constexpr BlockKernels kAvx512Kernels = {quantize::FourOverSixAvx512,    quantize::ModeloptAvx512, quantize::Modelopt4over6Avx512,
                                         quantize::ModeloptSweepAvx512, quantize::MaxBitsAvx512};
constexpr BlockKernels kAvx2Kernels = {quantize::FourOverSixAvx2, quantize::ModeloptAvx2, quantize::Modelopt4over6Avx2,
                                       quantize::ModeloptSweepAvx2, quantize::MaxBitsAvx2};
constexpr WeightQuantizer kAvx512 = {"avx512", Amax<kAvx512Kernels>, Quantize<kAvx512Kernels>, Fp8Rows<quantize::Fp8ToBf16Avx512>,
                                     quantize::F32ToBf16Avx512};
constexpr WeightQuantizer kAvx2 = {"avx2", Amax<kAvx2Kernels>, Quantize<kAvx2Kernels>, Fp8Rows<quantize::Fp8ToBf16Avx2>,
                                   quantize::F32ToBf16Avx2};
#endif

}  // namespace

std::span<const WeightQuantizer* const> WeightQuantizers() {
  static const std::vector<const WeightQuantizer*> available = [] {
    std::vector<const WeightQuantizer*> list;
#if defined(__x86_64__)
    if (platform::Cpu().HasAvx512()) list.push_back(&kAvx512);
    if (platform::Cpu().HasAvx2()) list.push_back(&kAvx2);
#endif
    list.push_back(&kScalar);
    return list;
  }();
  return available;
}

const WeightQuantizer& ChooseWeightQuantizer() { return *WeightQuantizers().front(); }

base::Result<const WeightQuantizer*> ChooseWeightQuantizer(const std::vector<std::pair<std::string, std::string>>& kernels) {
  const WeightQuantizer* chosen = &ChooseWeightQuantizer();
  for (const auto& [op, name] : kernels) {
    if (op != "quantize") continue;
    const auto all = WeightQuantizers();
    const auto found = std::find_if(all.begin(), all.end(), [&name = name](const WeightQuantizer* q) { return name == q->name; });
    if (found == all.end()) {
      std::string names;
      for (const WeightQuantizer* q : all) names += base::StrCat(names.empty() ? "" : ", ", q->name);
      return base::Fail(base::ErrorCode::kInvalidArgument, "no kernel ", name, " for quantize on this machine; it can run: ", names);
    }
    chosen = *found;
  }
  return chosen;
}

}  // namespace halfbyte::kernels
