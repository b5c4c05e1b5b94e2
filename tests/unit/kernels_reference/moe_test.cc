// Routed experts against formulas written out here, in FP64. NVFP4 activations are proven by results of other software (CheckMoeGolden);
// here: plain activations in every storage, and w4a8 by integer arithmetic.
#include <array>
#include <cmath>
#include <gtest/gtest.h>

#include "kernels/reference/reference_backend.h"
#include "numerics/activation_quantizer.h"
#include "support/compare_rows.h"
#include "support/device_data.h"
#include "support/golden_file.h"
#include "support/random_data.h"
#include "support/weight_data.h"

namespace halfbyte::test {
namespace {

using kernels::ActivationForm;
using kernels::ExpertPart;
using tensor::DType;
using tensor::Format;
using tensor::Outer;

constexpr int64_t kE = 3, kD = 80, kF = 48, kT = 6, kTopK = 2;

struct Layer {
  std::vector<std::array<WeightData, 3>> w;
  std::vector<float> x, before, weights;
  std::vector<int32_t> ids;
};

Layer MakeLayer(const std::array<Format, 3>& formats) {
  Layer l;
  for (uint64_t e = 0; e < kE; ++e)
    l.w.push_back({RandomWeight(formats[0], kF, kD, 10 * e), RandomWeight(formats[1], kF, kD, 10 * e + 1), RandomWeight(formats[2], kD, kF, 10 * e + 2)});
  Random random(7);
  l.x = random.Normals(kT * kD);
  l.before = random.Normals(kT * kD);
  for (int64_t t = 0; t < kT; ++t)
    for (int64_t s = 0; s < kTopK; ++s) {
      l.ids.push_back(static_cast<int32_t>((t + s) % kE));
      l.weights.push_back(static_cast<float>(random.Uniform()));
    }
  return l;
}

std::vector<float> RunBackend(const Layer& l, ActivationForm form, bool round_hidden) {
  const auto backend = kernels::CreateReferenceBackend({});
  kernels::ExpertsSpec spec{.experts = kE, .d = kD, .f = kF, .activations = form, .round_hidden = round_hidden};
  for (const auto& w : l.w) spec.formats.push_back({w[0].format, w[1].format, w[2].format});
  auto experts = backend->CreateExperts(spec);
  HB_CHECK(experts.has_value());
  EXPECT_EQ((*experts)->bytes(), backend->ExpertsBytes(spec));
  for (int64_t e = 0; e < kE; ++e)
    for (int p = 0; p < 3; ++p) HB_CHECK(backend->PackExpert(**experts, e, static_cast<ExpertPart>(p), l.w[e][p].View()).has_value());
  DeviceMatrix x(*backend, DType::kF32, kT, kD, l.x), out(*backend, DType::kF32, kT, kD, l.before);
  backend->Moe({.x = x.view(), .prompt_rows = 3, .experts = experts->get(), .top_k = kTopK, .ids = l.ids, .weights = l.weights, .out = out.view()});
  return out.Read();
}

double Dot(const WeightData& w, int64_t n, const double* x) {
  double sum = 0;
  for (int64_t i = 0; i < w.k; ++i) sum += w.values[n * w.k + i] * x[i];
  return sum;
}

// product(w, n, x): row n of w times x.
template <typename Product>
std::vector<float> Formula(const Layer& l, bool round_hidden, Product product) {
  std::vector<float> out;
  for (int64_t t = 0; t < kT; ++t) {
    const std::vector<double> x(l.x.begin() + t * kD, l.x.begin() + (t + 1) * kD);
    std::vector<double> y(l.before.begin() + t * kD, l.before.begin() + (t + 1) * kD);
    for (int64_t s = 0; s < kTopK; ++s) {
      const auto& w = l.w[l.ids[t * kTopK + s]];
      std::vector<double> h;
      for (int64_t n = 0; n < kF; ++n) {
        const double gate = product(w[0], n, x.data()), up = product(w[1], n, x.data());
        const auto value = static_cast<float>(gate / (1 + std::exp(-gate)) * up);
        h.push_back(round_hidden ? RoundBf16(value) : value);
      }
      for (int64_t n = 0; n < kD; ++n) y[n] += l.weights[t * kTopK + s] * product(w[2], n, h.data());
    }
    for (double v : y) out.push_back(static_cast<float>(v));
  }
  return out;
}

TEST(ReferenceMoe, PlainActivationsInEveryStorage) {
  const std::vector<std::array<Format, 3>> storages = {
      {Format::Nvfp4(), Format::Nvfp4(), Format::Nvfp4()},
      {Format::Bf16(), Format::Bf16(), Format::Bf16()},
      {Format::Plain(DType::kF16), Format::F32(), Format::Bf16()},
      {Format::Fp8Block(32, 32), Format::Fp8(Outer::kPerRow), Format::Fp8(Outer::kPerTensor)},
      {Format::Nvfp4(), Format::Bf16(), Format::Fp8Block(128, 128)},
  };
  for (const auto& formats : storages)
    for (bool round_hidden : {false, true}) {
      SCOPED_TRACE(base::StrCat(formats[0].ToString(), " ", formats[1].ToString(), " ", formats[2].ToString(), round_hidden ? " rounded" : ""));
      const Layer l = MakeLayer(formats);
      ExpectRowsClose(RunBackend(l, ActivationForm::kPlain, round_hidden), Formula(l, round_hidden, Dot), kT, {5e-7, 5e-7, 0});
    }
}

// y = ws2 * sum over groups of s * (sum over their 16-blocks of block scale * integer dot) / 2, with the dot of 2 * E2M1 and the codes of x in
// integers, x in groups of 32 (F = 48: the last has 16).
double Int8Product(const WeightData& w, int64_t n, const double* x) {
  if (!w.format.is_nvfp4()) return Dot(w, n, x);
  double sum = 0;
  for (int64_t g = 0; g < w.k; g += 32) {
    const int64_t end = std::min(g + 32, w.k);
    float amax = 0;
    for (int64_t i = g; i < end; ++i) amax = std::max(amax, std::abs(static_cast<float>(x[i])));
    const float s = amax / 127.0f;
    double group = 0;
    for (int64_t b = g; b < end; b += 16) {
      int64_t dot = 0;
      for (int64_t i = b; i < b + 16; ++i) {
        const uint8_t byte = w.elements[(n * w.k + i) / 2];
        const double code = s == 0 ? 0 : std::clamp(std::nearbyint(static_cast<float>(x[i]) / s), -127.0f, 127.0f);
        dot += static_cast<int64_t>(2 * E2m1Value(i % 2 ? byte >> 4 : byte & 15)) * static_cast<int64_t>(code);
      }
      group += E4m3Value(w.block_scales[(n * w.k + b) / 16]) * static_cast<double>(dot) / 2;
    }
    sum += s * group;
  }
  return w.outer[0] * sum;
}

TEST(ReferenceMoe, Int8GroupsByIntegerArithmetic) {
  for (const auto& formats : {std::array{Format::Nvfp4(), Format::Nvfp4(), Format::Nvfp4()}, {Format::Nvfp4(), Format::Bf16(), Format::Nvfp4()}})
    for (bool round_hidden : {false, true}) {
      const Layer l = MakeLayer(formats);
      ExpectRowsClose(RunBackend(l, ActivationForm::kInt8Groups, round_hidden), Formula(l, round_hidden, Int8Product), kT, {5e-7, 5e-7, 0});
    }
}

// The activations that enter the experts, byte by byte as other software made them.
TEST(ReferenceMoe, ActivationCodesAreTheGoldenOnes) {
  for (const auto& folder : GoldenMoeModels()) {
    SCOPED_TRACE(folder.filename().string());
    const GoldenFile want = ReadGolden(folder / "expected_nvfp4.safetensors");
    const auto& x = want.at("moe.x");
    const int64_t rows = x.shape[0], cols = x.shape[1];
    std::vector<uint8_t> codes(static_cast<size_t>(rows * cols / 2)), scales(static_cast<size_t>(rows * cols / 16));
    std::vector<float> row_scales(static_cast<size_t>(rows));
    numerics::QuantizeActivationPerToken(x.Floats().data(), rows, cols, codes.data(), scales.data(), row_scales.data());
    EXPECT_EQ(codes, want.at("moe.x_token.codes").bytes);
    EXPECT_EQ(scales, want.at("moe.x_token.scales").bytes);
    EXPECT_EQ(row_scales, want.at("moe.x_token.row_scale").Floats());
    numerics::QuantizeActivationPerTensor(x.Floats().data(), rows, cols, 1.0f, codes.data(), scales.data());
    EXPECT_EQ(codes, want.at("moe.x_tensor.codes").bytes);
    EXPECT_EQ(scales, want.at("moe.x_tensor.scales").bytes);
  }
}

TEST(ReferenceMoe, InputScaleMustBePositive) {
  const auto backend = kernels::CreateReferenceBackend({});
  kernels::ExpertsSpec spec{.experts = 1, .d = 16, .f = 16, .activations = ActivationForm::kNvfp4Static};
  spec.formats.push_back({Format::Nvfp4(), Format::Nvfp4(), Format::Nvfp4()});
  auto experts = backend->CreateExperts(spec);
  ASSERT_TRUE(experts);
  for (float scale : {0.0f, -1.0f, NAN, INFINITY}) EXPECT_FALSE(backend->SetInputScale(**experts, 0, ExpertPart::kGate, scale)) << scale;
}

}  // namespace
}  // namespace halfbyte::test
