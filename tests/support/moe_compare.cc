// The differential kit for Moe.
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <iostream>

#include "kernels/reference/reference_backend.h"
#include "platform/parallel.h"
#include "support/backend_compare.h"
#include "support/compare_rows.h"
#include "support/device_data.h"
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
using tensor::Outer;

struct Shape {
  int64_t experts, d, f, top_k;
};
constexpr Shape kShapes[] = {{1, 16, 16, 1}, {4, 64, 32, 2}, {6, 48, 80, 3}, {8, 96, 48, 8}, {5, 112, 144, 4}, {10, 272, 128, 6}};
constexpr int64_t kRows[] = {0, 1, 15, 16, 17, 33};

// How the experts of a layer are stored.
struct Storage {
  const char* name;
  std::function<Format(int64_t expert, int part)> format;
};
std::vector<Storage> Storages() {
  const auto all = [](Format f) { return [f](int64_t, int) { return f; }; };
  return {{"NVFP4", all(Format::Nvfp4())},
          {"BF16", all(Format::Bf16())},
          {"F32", all(Format::F32())},
          {"FP8 128x128", all(Format::Fp8Block(128, 128))},
          {"FP8 32x32", all(Format::Fp8Block(32, 32))},
          {"FP8 per tensor", all(Format::Fp8(Outer::kPerTensor))},
          {"FP8 per row", all(Format::Fp8(Outer::kPerRow))},
          // --ignore-layers and mixed sources: experts of one layer in NVFP4, BF16 and FP8.
          {"mixed experts", [](int64_t e, int) { return e % 3 == 0 ? Format::Nvfp4() : e % 3 == 1 ? Format::Bf16() : Format::Fp8Block(32, 32); }}};
}

const char* FormName(ActivationForm form) {
  switch (form) {
    case ActivationForm::kPlain: return "plain";
    case ActivationForm::kInt8Groups: return "INT8 groups";
    case ActivationForm::kNvfp4PerToken: return "NVFP4 per token";
    case ActivationForm::kNvfp4Static: return "NVFP4 static";
  }
  return "?";
}

// One layer's matrices. In NVFP4 each matrix has a ws2 of its own, so gate and up never agree.
struct Layer {
  ExpertsSpec spec;
  std::vector<std::array<WeightData, 3>> weights;
  std::vector<std::array<float, 3>> input_scales;
};

Layer MakeLayer(const Shape& s, const Storage& storage, ActivationForm form, bool round_hidden, uint64_t seed) {
  Layer layer{.spec = {.experts = s.experts, .d = s.d, .f = s.f, .activations = form, .round_hidden = round_hidden}};
  Random random(seed);
  for (int64_t e = 0; e < s.experts; ++e) {
    std::array<Format, 3> formats;
    std::array<WeightData, 3> weights;
    for (int p = 0; p < 3; ++p) {
      formats[p] = storage.format(e, p);
      weights[p] = RandomWeight(formats[p], p == 2 ? s.d : s.f, p == 2 ? s.f : s.d, random.Bits());
    }
    layer.spec.formats.push_back(formats);
    layer.weights.push_back(std::move(weights));
    // Around amax/2688 of what flows there; each expert its own, the layer's largest counts.
    const auto scale = [&] { return static_cast<float>((2 + random.Uniform()) / 2688); };
    layer.input_scales.push_back({scale(), scale(), scale()});
  }
  return layer;
}

std::unique_ptr<kernels::ExpertsWeight> Pack(Backend& backend, const Layer& layer) {
  auto experts = backend.CreateExperts(layer.spec);
  HB_CHECK(experts.has_value(), experts ? "" : experts.error().ToString());
  for (int64_t e = 0; e < layer.spec.experts; ++e)
    for (ExpertPart part : {ExpertPart::kDown, ExpertPart::kUp, ExpertPart::kGate}) {
      const auto p = static_cast<size_t>(part);
      HB_CHECK(backend.PackExpert(**experts, e, part, layer.weights[e][p].View()).has_value());
      if (layer.spec.activations == ActivationForm::kNvfp4Static)
        HB_CHECK(backend.SetInputScale(**experts, e, part, layer.input_scales[e][p]).has_value());
    }
  return std::move(*experts);
}

enum class Routing { kRandom, kAllOnOne, kEvenOnly };

struct Routes {
  std::vector<int32_t> ids;
  std::vector<float> weights;
};

Routes MakeRoutes(const Shape& s, int64_t rows, Routing routing, uint64_t seed) {
  Random random(seed);
  Routes routes;
  for (int64_t t = 0; t < rows; ++t) {
    std::vector<int32_t> left;
    for (int32_t e = 0; e < s.experts; ++e) left.push_back(e);
    for (int64_t slot = 0; slot < s.top_k; ++slot) {
      int64_t at = random.Below(static_cast<int64_t>(left.size()));
      // The same first choice for every row; or even experts as long as there are some, so that odd ones stay without tokens.
      if (routing == Routing::kAllOnOne && slot == 0) at = s.experts / 2;
      for (int64_t i = 0; routing == Routing::kEvenOnly && i < static_cast<int64_t>(left.size()) && left[at] % 2 == 1; ++i)
        at = (at + 1) % static_cast<int64_t>(left.size());
      routes.ids.push_back(left[at]);
      left.erase(left.begin() + at);
      routes.weights.push_back(static_cast<float>(random.Uniform()));
    }
  }
  return routes;
}

struct Batch {
  int64_t rows = 0, prompt_rows = 0;
  DType x = DType::kF32;
};

std::vector<float> Run(Backend& backend, const kernels::ExpertsWeight& experts, const Batch& batch, int64_t top_k, std::span<const float> x,
                       std::span<const int32_t> ids, std::span<const float> weights, std::span<const float> before) {
  const int64_t d = experts.spec().d;
  DeviceMatrix in(backend, batch.x, batch.rows, d, x, 8), out(backend, DType::kF32, batch.rows, d, before, 16);
  DeviceArray<int32_t> device_ids(backend, ids);
  DeviceArray<float> device_weights(backend, weights);
  backend.Moe({.x = in.view(), .prompt_rows = batch.prompt_rows, .experts = &experts, .top_k = top_k, .ids = device_ids.span(),
               .weights = device_weights.span(), .out = out.view()});
  return out.Read();
}

RowBound BoundFor(const ExpertsSpec& spec) {
  switch (spec.activations) {
    case ActivationForm::kPlain: return spec.round_hidden ? RowBound{1e-5, 8e-3, 0.3} : RowBound{1e-5, 1e-5, 0};
    case ActivationForm::kInt8Groups: return {1e-5, 3e-2, 0.3};
    default: return {1e-5, 0.3, 0.3};
  }
}

std::vector<float> MakeX(int64_t rows, int64_t d, DType dtype, uint64_t seed) {
  std::vector<float> x = AwkwardRows(rows, d, seed);
  if (dtype == DType::kBF16)
    for (float& v : x) v = RoundBf16(v);
  return x;
}

void CompareLayer(Backend& backend, Backend& oracle, const Shape& s, const Layer& layer, uint64_t seed, Effort effort) {
  const auto mine = Pack(backend, layer), theirs = Pack(oracle, layer);
  Random random(seed);
  for (DType dtype : {DType::kF32, DType::kBF16})
    for (int64_t rows : kRows)
      for (Routing routing : {Routing::kRandom, Routing::kAllOnOne, Routing::kEvenOnly}) {
        if ((rows == 0 || effort == Effort::kQuick) && routing != Routing::kRandom) continue;
        const Batch batch{.rows = rows, .prompt_rows = random.Below(rows + 1), .x = dtype};
        SCOPED_TRACE(base::StrCat("rows ", rows, ", ", batch.prompt_rows, " of them prompt, x ", tensor::DTypeName(dtype), ", routing ",
                                  static_cast<int>(routing)));
        const std::vector<float> x = MakeX(rows, s.d, dtype, random.Bits());
        const Routes routes = MakeRoutes(s, rows, routing, random.Bits());
        const std::vector<float> before = random.Normals(rows * s.d, 0.01);
        ExpectRowsClose(Run(backend, *mine, batch, s.top_k, x, routes.ids, routes.weights, before),
                        Run(oracle, *theirs, batch, s.top_k, x, routes.ids, routes.weights, before), rows, BoundFor(layer.spec));
      }
}

// Calls body(shape, layer, seed) for everything that the backend offers. INT8 groups and NVFP4 activations differ from plain ones where some
// matrix is NVFP4; h is BF16 by contract per token and never rounded in the static form.
void ForEachLayer(Backend& backend, std::span<const Shape> shapes, Skipped& skipped, const std::function<void(const Shape&, const Layer&, uint64_t)>& body) {
  uint64_t seed = 1000;
  for (const Storage& storage : Storages())
    for (ActivationForm form : {ActivationForm::kPlain, ActivationForm::kInt8Groups, ActivationForm::kNvfp4PerToken, ActivationForm::kNvfp4Static})
      for (bool round_hidden : {false, true}) {
        const bool nvfp4 = storage.format(0, 0).is_nvfp4();
        if (!nvfp4 && form != ActivationForm::kPlain) continue;
        if (form == ActivationForm::kNvfp4PerToken && !round_hidden) continue;
        if (form == ActivationForm::kNvfp4Static && round_hidden) continue;
        const std::string what = base::StrCat(storage.name, ", activations ", FormName(form), round_hidden ? ", h rounded" : ", h FP32");
        for (const Shape& s : shapes) {
          const Layer layer = MakeLayer(s, storage, form, round_hidden, ++seed);
          if (!backend.SupportsExperts(layer.spec)) {
            skipped.push_back(what);
            std::cout << backend.name() << " does not offer experts in " << what << "\n";
            break;
          }
          SCOPED_TRACE(base::StrCat(what, ", E ", s.experts, ", D ", s.d, ", F ", s.f, ", top ", s.top_k));
          body(s, layer, seed);
        }
      }
}

void CheckInvariance(Backend& backend, const Shape& s, const Layer& layer, DType dtype) {
  constexpr int64_t kT = 37;
  const auto experts = Pack(backend, layer);
  const std::vector<float> x = MakeX(kT, s.d, dtype, 78), before = Random(79).Normals(kT * s.d, 0.01);
  const Routes routes = MakeRoutes(s, kT, Routing::kRandom, 80);
  const auto run = [&](int64_t begin, int64_t end, int64_t prompt) {
    const auto n = static_cast<size_t>(end - begin);
    return Run(backend, *experts, {.rows = end - begin, .prompt_rows = prompt, .x = dtype}, s.top_k, std::span(x).subspan(begin * s.d, n * s.d),
               std::span(routes.ids).subspan(begin * s.top_k, n * s.top_k), std::span(routes.weights).subspan(begin * s.top_k, n * s.top_k),
               std::span(before).subspan(begin * s.d, n * s.d));
  };
  const auto rows_of = [&](const std::vector<float>& m, int64_t begin, int64_t end) {
    return std::vector<float>(m.begin() + begin * s.d, m.begin() + end * s.d);
  };
  platform::SetThreads(1);
  const std::vector<float> prompt = run(0, kT, kT), generated = run(0, kT, 0);
  for (int threads : {1, 2, 5}) {
    platform::SetThreads(threads);
    SCOPED_TRACE(base::StrCat(threads, " threads"));
    for (int64_t split : {0, 1, 2, 15, 16, 17, 36, 37}) {
      std::vector<float> want = rows_of(prompt, 0, split);
      const std::vector<float> rest = rows_of(generated, split, kT);
      want.insert(want.end(), rest.begin(), rest.end());
      ExpectSameBits(run(0, kT, split), want, base::StrCat("prompt_rows ", split));
    }
    for (auto [begin, end] : {std::pair<int64_t, int64_t>{0, 1}, {3, 4}, {5, 7}, {20, 36}, {20, 37}, {36, 37}}) {
      ExpectSameBits(run(begin, end, end - begin), rows_of(prompt, begin, end), base::StrCat("prompt rows ", begin, " to ", end, " alone"));
      ExpectSameBits(run(begin, end, 0), rows_of(generated, begin, end), base::StrCat("generated rows ", begin, " to ", end, " alone"));
    }
  }
}

}  // namespace

Skipped CompareMoe(Backend& backend, Effort effort) {
  const auto oracle = kernels::CreateReferenceBackend({});
  Skipped skipped;
  ForEachLayer(backend, std::span(kShapes).first(effort == Effort::kQuick ? 3 : std::size(kShapes)), skipped,
               [&](const Shape& s, const Layer& layer, uint64_t seed) { CompareLayer(backend, *oracle, s, layer, seed, effort); });
  return skipped;
}

Skipped CheckMoeInvariance(Backend& backend, Effort effort) {
  const int threads = platform::Threads();
  constexpr Shape kFew[] = {{4, 48, 80, 2}, {5, 272, 144, 3}};
  Skipped skipped;
  ForEachLayer(backend, std::span(kFew).first(effort == Effort::kQuick ? 1 : std::size(kFew)), skipped, [&](const Shape& s, const Layer& layer, uint64_t) {
    for (DType dtype : {DType::kF32, DType::kBF16}) {
      SCOPED_TRACE(tensor::DTypeName(dtype));
      CheckInvariance(backend, s, layer, dtype);
    }
  });
  platform::SetThreads(threads);
  return skipped;
}

}  // namespace halfbyte::test
