// Routed experts: gather, gate and up, SwiGLU, down, weighted sum. The order of arithmetic is that of the three run modes
// (reference-behaviour 2.2-2.4): sums times scales give gate and up in FP32; h = silu(gate) * up in FP32; h is rounded to BF16 where
// the spec says so, then quantized again in its own right; sums times scales times the routing weight.
#include <cmath>
#include <optional>

#include "kernels/reference/ops.h"
#include "kernels/reference/product.h"
#include "kernels/reference/weights.h"
#include "numerics/bf16.h"

namespace halfbyte::kernels::reference {
namespace {

// Where an expert's result goes: slot s of token t.
struct Route {
  int64_t token, slot;
};

std::vector<std::vector<Route>> RoutesByExpert(const MoeOp& op, int64_t experts) {
  std::vector<std::vector<Route>> routes(static_cast<size_t>(experts));
  for (int64_t t = 0; t < op.x.rows; ++t)
    for (int64_t s = 0; s < op.top_k; ++s) {
      const int32_t e = op.ids[static_cast<size_t>(t * op.top_k + s)];
      HB_CHECK(0 <= e && e < experts, "row ", t, " is routed to expert ", e, " of ", experts);
      routes[static_cast<size_t>(e)].push_back({t, s});
    }
  return routes;
}

// The form in which activations meet this matrix: quantized forms are for NVFP4 matrices only.
ActivationForm FormFor(const ExpertsSpec& spec, const StoredMatrix& w) {
  return w.format().is_nvfp4() ? spec.activations : ActivationForm::kPlain;
}

float SwiGlu(float gate, float up) { return static_cast<float>(gate / (1.0 + std::exp(-static_cast<double>(gate))) * up); }

// x, at most once for each of the two forms that a layer can need.
class Inputs {
 public:
  Inputs(const Matrix& x, float input_scale) : x_(x), input_scale_(input_scale) {}
  const Activations& In(ActivationForm form) {
    auto& made = form == ActivationForm::kPlain ? plain_ : quantized_;
    if (!made) made = MakeActivations(x_, form, input_scale_);
    return *made;
  }

 private:
  Matrix x_;
  float input_scale_;
  std::optional<Activations> plain_, quantized_;
};

// h F32 [tokens, F]
std::vector<float> Hidden(const ReferenceExperts& experts, int64_t e, Inputs& x, std::span<const int64_t> tokens) {
  const ExpertsSpec& spec = experts.spec();
  const auto project = [&](ExpertPart part) {
    const StoredMatrix& w = experts.matrix(e, part);
    std::vector<float> out(tokens.size() * static_cast<size_t>(spec.f));
    Multiply(x.In(FormFor(spec, w)), tokens, w, [&](int64_t i, int64_t n, double y) { out[i * spec.f + n] = static_cast<float>(y); });
    return out;
  };
  std::vector<float> h = project(ExpertPart::kGate);
  const std::vector<float> up = project(ExpertPart::kUp);
  for (size_t i = 0; i < h.size(); ++i) {
    h[i] = SwiGlu(h[i], up[i]);
    if (spec.round_hidden) h[i] = numerics::RoundToBf16(h[i]);
  }
  return h;
}

}  // namespace

void RunMoe(const MoeOp& op) {
  const auto& experts = static_cast<const ReferenceExperts&>(*op.experts);
  const ExpertsSpec& spec = experts.spec();
  HB_CHECK(op.x.cols == spec.d && op.out.cols == spec.d && op.out.rows == op.x.rows && op.out.dtype == DType::kF32);
  HB_CHECK(static_cast<int64_t>(op.ids.size()) >= op.x.rows * op.top_k && op.weights.size() >= op.ids.size());
  const float h_scale = experts.LayerInputScale(ExpertPart::kDown);
  Inputs x(op.x, experts.LayerInputScale(ExpertPart::kGate));
  std::vector<float> results(static_cast<size_t>(op.x.rows * op.top_k * spec.d));  // [T, k, D]
  const auto routes = RoutesByExpert(op, spec.experts);
  for (int64_t e = 0; e < spec.experts; ++e) {
    const auto& mine = routes[static_cast<size_t>(e)];
    if (mine.empty()) continue;
    std::vector<int64_t> tokens, all;
    for (const Route& r : mine) {
      all.push_back(static_cast<int64_t>(tokens.size()));
      tokens.push_back(r.token);
    }
    const std::vector<float> h = Hidden(experts, e, x, tokens);
    if (op.observer) op.observer->Hidden(e, Matrix(h.data(), DType::kF32, static_cast<int64_t>(tokens.size()), spec.f));
    const StoredMatrix& down = experts.matrix(e, ExpertPart::kDown);
    const Activations hidden = MakeActivations(Matrix(h.data(), DType::kF32, static_cast<int64_t>(tokens.size()), spec.f),
                                               FormFor(spec, down), h_scale);
    Multiply(hidden, all, down, [&](int64_t i, int64_t n, double y) {
      results[(mine[i].token * op.top_k + mine[i].slot) * spec.d + n] = static_cast<float>(y);
    });
  }
  platform::ParallelFor(op.x.rows, 8, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      for (int64_t n = 0; n < spec.d; ++n) {
        double sum = op.out.row<float>(t)[n];
        for (int64_t s = 0; s < op.top_k; ++s)
          sum += static_cast<double>(op.weights[t * op.top_k + s]) * results[(t * op.top_k + s) * spec.d + n];
        op.out.row<float>(t)[n] = static_cast<float>(sum);
      }
  });
}

}  // namespace halfbyte::kernels::reference
