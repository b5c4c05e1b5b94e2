// Moe against results that other software computed, and the user cases about scales.
#include <array>
#include <gtest/gtest.h>
#include <numeric>

#include "numerics/weight_quantizer.h"
#include "support/backend_compare.h"
#include "support/compare_rows.h"
#include "support/device_data.h"
#include "support/golden_file.h"
#include "support/random_data.h"
#include "support/weight_data.h"

namespace halfbyte::test {
namespace {

using kernels::ActivationForm;
using kernels::Backend;
using kernels::ExpertPart;
using kernels::ExpertsSpec;
using tensor::DType;
using tensor::Format;

constexpr ActivationForm kForms[] = {ActivationForm::kPlain, ActivationForm::kInt8Groups, ActivationForm::kNvfp4PerToken, ActivationForm::kNvfp4Static};

struct Nvfp4Matrix {
  int64_t rows = 0, cols = 0;
  std::vector<uint8_t> codes, scales;
  float ws2 = 1;
  tensor::QuantizedMatrix View() const {
    return {.format = Format::Nvfp4(), .rows = rows, .cols = cols, .elements = codes.data(), .block_scales = scales.data(), .outer = &ws2};
  }
};
using Expert = std::array<Nvfp4Matrix, 3>;  // gate, up, down

// The load-time contract: gate and up share their amax, down stands alone.
Expert QuantizeExpert(const std::array<std::vector<float>, 3>& w, int64_t d, int64_t f) {
  const auto contract = numerics::WeightContract::Online();
  const float gate_up = numerics::Merge(numerics::Amax(w[0]), numerics::Amax(w[1])).amax;
  Expert expert;
  for (size_t p = 0; p < 3; ++p) {
    Nvfp4Matrix& m = expert[p];
    m.rows = p == 2 ? d : f;
    m.cols = p == 2 ? f : d;
    m.codes.resize(static_cast<size_t>(m.rows * m.cols / 2));
    m.scales.resize(static_cast<size_t>(m.rows * m.cols / 16));
    const auto scale = numerics::GlobalScaleFor(contract, p == 2 ? numerics::Amax(w[p]).amax : gate_up);
    m.ws2 = scale.ws2;
    numerics::QuantizeMatrix(contract, w[p].data(), m.rows, m.cols, scale, m.codes.data(), m.scales.data());
  }
  return expert;
}

std::unique_ptr<kernels::ExpertsWeight> Pack(Backend& backend, const std::vector<Expert>& experts, ActivationForm form) {
  ExpertsSpec spec{.experts = static_cast<int64_t>(experts.size()), .d = experts[0][0].cols, .f = experts[0][0].rows, .activations = form,
                   .round_hidden = form == ActivationForm::kNvfp4PerToken};
  spec.formats.assign(experts.size(), {Format::Nvfp4(), Format::Nvfp4(), Format::Nvfp4()});
  if (auto status = backend.SupportsExperts(spec); !status) return nullptr;
  auto weight = backend.CreateExperts(spec);
  HB_CHECK(weight.has_value());
  for (size_t e = 0; e < experts.size(); ++e)
    for (size_t p = 0; p < 3; ++p)
      HB_CHECK(backend.PackExpert(**weight, static_cast<int64_t>(e), static_cast<ExpertPart>(p), experts[e][p].View()).has_value());
  return std::move(*weight);
}

// y F32 [rows, D], all rows of one class.
std::vector<float> Run(Backend& backend, const kernels::ExpertsWeight& w, const std::vector<float>& x, int64_t top_k, const std::vector<int32_t>& ids,
                       const std::vector<float>& weights, bool prompt) {
  const int64_t d = w.spec().d, rows = static_cast<int64_t>(x.size()) / d;
  DeviceMatrix in(backend, DType::kF32, rows, d, x), out(backend, DType::kF32, rows, d);
  DeviceArray<int32_t> device_ids(backend, ids);
  DeviceArray<float> device_weights(backend, weights);
  backend.Moe({.x = in.view(), .prompt_rows = prompt ? rows : 0, .experts = &w, .top_k = top_k, .ids = device_ids.span(),
               .weights = device_weights.span(), .out = out.view()});
  return out.Read();
}

// The experts of the model's first MoE layer, in the source's precision: [expert][part].
std::vector<std::array<std::vector<float>, 3>> FirstMoeLayer(const GoldenFile& model) {
  std::vector<std::array<std::vector<float>, 3>> experts;
  for (int layer = 0; layer < 8 && experts.empty(); ++layer)
    for (int e = 0;; ++e) {
      const std::string base = base::StrCat("model.layers.", layer, "."), mixtral = base::StrCat(base, "block_sparse_moe.experts.", e, ".");
      const std::string other = base::StrCat(base, "mlp.experts.", e, ".");
      std::array<std::vector<float>, 3> w;
      if (model.contains(mixtral + "w1.weight")) {
        for (int p = 0; p < 3; ++p) w[p] = model.at(mixtral + std::array{"w1", "w3", "w2"}[p] + ".weight").Floats();
      } else if (model.contains(other + "gate_proj.weight")) {
        for (int p = 0; p < 3; ++p) w[p] = model.at(other + std::array{"gate", "up", "down"}[p] + "_proj.weight").Floats();
      } else {
        break;
      }
      experts.push_back(std::move(w));
    }
  HB_CHECK(!experts.empty());
  return experts;
}

void CheckGoldenModel(Backend& backend, const std::filesystem::path& folder) {
  const GoldenFile model = ReadGolden(folder / "model.safetensors"), want = ReadGolden(folder / "expected_nvfp4.safetensors");
  const std::vector<float> x = want.at("moe.x").Floats(), weights = want.at("moe.topk_weight").Floats();
  const int64_t d = want.at("moe.x").shape[1], top_k = want.at("moe.topk_index").shape[1], f = want.at("expert0.gate.codes").shape[0];
  std::vector<int32_t> ids;
  for (int64_t id : want.at("moe.topk_index").As<int64_t>()) ids.push_back(static_cast<int32_t>(id));
  std::vector<Expert> experts;
  for (const auto& w : FirstMoeLayer(model)) experts.push_back(QuantizeExpert(w, d, f));
  for (auto [form, name] : {std::pair{ActivationForm::kPlain, "moe.out.w4a16"}, {ActivationForm::kNvfp4PerToken, "moe.out.w4a4_token"},
                            {ActivationForm::kNvfp4Static, "moe.out.w4a4_tensor"}}) {
    const auto packed = Pack(backend, experts, form);
    ASSERT_TRUE(packed) << name << " is not offered";
    const std::vector<float> expected = want.at(name).Floats();
    for (bool prompt : {true, false}) {
      SCOPED_TRACE(base::StrCat(name, prompt ? ", prompt rows" : ", generated rows"));
      ExpectWithin(Run(backend, *packed, x, top_k, ids, weights, prompt), expected, std::vector<double>(expected.size(), 1e-5));
    }
  }
}

}  // namespace

void CheckMoeGolden(Backend& backend) {
  for (const auto& folder : GoldenMoeModels()) {
    SCOPED_TRACE(folder.filename().string());
    CheckGoldenModel(backend, folder);
  }
}

void CheckUnequalGateUpScales(Backend& backend) {
  const auto constant = [](float ws2) {
    const WeightData w = ConstantNvfp4(16, 16, 2, 0x38, ws2);
    return Nvfp4Matrix{.rows = 16, .cols = 16, .codes = w.elements, .scales = w.block_scales, .ws2 = ws2};
  };
  const std::vector<Expert> experts = {{constant(1), constant(2), constant(1)}};
  for (ActivationForm form : kForms) {
    const auto packed = Pack(backend, experts, form);
    if (!packed) continue;
    SCOPED_TRACE(base::StrCat("activation form ", static_cast<int>(form)));
    HB_CHECK(backend.SetInputScale(*packed, 0, ExpertPart::kGate, 0.0625f / 2688).has_value());
    HB_CHECK(backend.SetInputScale(*packed, 0, ExpertPart::kDown, 1.46212f / 2688).has_value());
    for (bool prompt : {true, false}) {
      const std::vector<float> y = Run(backend, *packed, std::vector<float>(16, 0.0625f), 1, {0}, {1.0f}, prompt);
      // INT8 and NVFP4 hit these constants exactly but for the rounding of h to BF16 and of its scale.
      for (float v : y) EXPECT_NEAR(v, 23.394, form == ActivationForm::kPlain ? 1e-3 : 0.1);
    }
  }
}

void CheckZeroExpert(Backend& backend) {
  Random random(4);
  constexpr int64_t kD = 32, kF = 16;
  const Expert live = QuantizeExpert({random.Normals(kD * kF), random.Normals(kD * kF), random.Normals(kD * kF)}, kD, kF);
  const std::vector<float> none(kD * kF, 0.0f);
  const Expert zero = QuantizeExpert({none, none, none}, kD, kF);
  const std::vector<float> x = random.Normals(2 * kD);
  for (ActivationForm form : kForms) {
    const auto both = Pack(backend, {live, zero}, form), alone = Pack(backend, {live}, form);
    if (!both) continue;
    SCOPED_TRACE(base::StrCat("activation form ", static_cast<int>(form)));
    for (bool prompt : {true, false}) {
      for (float v : Run(backend, *both, x, 1, {1, 1}, {0.7f, 1.0f}, prompt)) EXPECT_EQ(v, 0.0f);
      ExpectSameBits(Run(backend, *both, x, 1, {0, 0}, {0.7f, 1.0f}, prompt), Run(backend, *alone, x, 1, {0, 0}, {0.7f, 1.0f}, prompt),
                     "a zero expert beside it");
    }
  }
}

void CheckStaticScales(Backend& backend) {
  Random random(6);
  constexpr int64_t kD = 48, kF = 32;
  std::vector<Expert> experts;
  for (int e = 0; e < 3; ++e) experts.push_back(QuantizeExpert({random.Normals(kD * kF, 0.1), random.Normals(kD * kF, 0.1), random.Normals(kD * kF, 0.1)}, kD, kF));
  const std::vector<float> x = random.Normals(6 * kD);
  const std::vector<int32_t> ids = {0, 1, 2, 0, 1, 2};
  const std::vector<float> weights(6, 1.0f);
  // {expert, part, scale} -> result
  const auto run = [&](const std::vector<std::tuple<int64_t, ExpertPart, float>>& scales) {
    const auto packed = Pack(backend, experts, ActivationForm::kNvfp4Static);
    HB_CHECK(packed != nullptr);
    for (auto [e, part, scale] : scales) HB_CHECK(backend.SetInputScale(*packed, e, part, scale).has_value());
    return Run(backend, *packed, x, 1, ids, weights, true);
  };
  const float a = 0.001f, b = 0.003f;
  const auto all = [&](float gate_up, float down) {
    std::vector<std::tuple<int64_t, ExpertPart, float>> scales;
    for (int64_t e = 0; e < 3; ++e) {
      for (ExpertPart part : {ExpertPart::kGate, ExpertPart::kUp}) scales.emplace_back(e, part, gate_up);
      scales.emplace_back(e, ExpertPart::kDown, down);
    }
    return run(scales);
  };
  ExpectSameBits(run({}), all(1, 1), "no scale set: 1.0");
  ExpectSameBits(run({{0, ExpertPart::kGate, a}, {1, ExpertPart::kUp, b}, {2, ExpertPart::kDown, a}}), all(b, a), "the layer's largest of gate and up");
  ExpectSameBits(run({{0, ExpertPart::kGate, a}, {1, ExpertPart::kDown, a}, {2, ExpertPart::kDown, b}}), all(a, b), "the layer's largest of down");
  EXPECT_NE(all(a, b), all(b, b));
}

}  // namespace halfbyte::test
