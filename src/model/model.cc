#include "model/model.h"

#include <algorithm>

#include "model/weights.h"

namespace halfbyte::model {
namespace {

using kernels::Batch;
using kernels::Matrix;
using kernels::MutableMatrix;
using tensor::DType;

}  // namespace

std::vector<LayerState> LayerStates(const ModelSpec& spec, int64_t block_tokens, DType kv_dtype) {
  std::vector<LayerState> out;
  for (const LayerSpec& l : spec.layers)
    out.push_back(PagedState{{l.attention.kv_heads, l.attention.head_dim, block_tokens, kv_dtype}, l.attention.window});
  return out;
}

// Activations of one step, grown to the largest batch seen. act is BF16 (rounded form) or F32 (exact).
struct StepScratch {
  int64_t rows = 0;
  tensor::Buffer residual, norm, q, k, v, q_act, attention, gate, up, hidden, y, shared_gate, router, route_ids, route_weights;  // of every row
  tensor::Buffer final_rows, final_norm, logits;                                                                                // of rows with logits

  base::Status Reserve(kernels::Backend& b, const ModelSpec& spec, DType act, int64_t all_rows, int64_t logit_rows);
};

Model::Model(ModelSpec spec, std::unique_ptr<Weights> weights, std::unique_ptr<kernels::Backend> backend, Arithmetic arithmetic)
    : spec_(std::move(spec)), backend_(std::move(backend)), weights_(std::move(weights)), arithmetic_(arithmetic), scratch_(std::make_unique<StepScratch>()) {}
Model::~Model() = default;

namespace {

// One layer's step over the batch: what the whole model is made of.
class LayerPass {
 public:
  LayerPass(kernels::Backend& b, const ModelSpec& spec, const Weights& w, DType act, const Batch& batch, ExpertObserver* observer)
      : b_(b), spec_(spec), w_(w), act_(act), batch_(batch), observer_(observer) {}

  void Norm(Matrix x, const Vector& weight, MutableMatrix out) const { b_.RmsNorm({x, weight.data(), spec_.norm_eps, spec_.norm_plus_one, out}); }

  // residual += o_proj(attention(norm(residual)))
  void Attention(int layer, const LayerWeights& lw, StepScratch& s, kernels::KvLayer kv) const {
    const AttentionSpec& a = spec_.layers[static_cast<size_t>(layer)].attention;
    const int64_t t = batch_.rows, qn = a.heads * a.head_dim, kn = a.kv_heads * a.head_dim;
    MutableMatrix residual(s.residual.data(), DType::kF32, t, spec_.hidden), norm(s.norm.data(), act_, t, spec_.hidden);
    MutableMatrix q(s.q.data(), DType::kF32, t, qn), k(s.k.data(), DType::kF32, t, kn), v(s.v.data(), DType::kF32, t, kn);
    MutableMatrix q_act(s.q_act.data(), act_, t, qn), out(s.attention.data(), act_, t, qn);
    Norm(residual, lw.attention_norm, norm);
    const kernels::LinearPart qkv[] = {{lw.q.get(), lw.q_bias.data(), q}, {lw.k.get(), lw.k_bias.data(), k}, {lw.v.get(), lw.v_bias.data(), v}};
    b_.Linear({norm, batch_.prompt_rows, qkv});
    kernels::QkvOp op;
    op.batch = batch_;
    op.heads = a.heads; op.kv_heads = a.kv_heads; op.head_dim = a.head_dim;
    op.q = q; op.k = k; op.v = v;
    op.clip = a.clip;
    op.norm = a.qk_norm;
    op.q_norm = lw.q_norm.data(); op.k_norm = lw.k_norm.data();
    op.eps = spec_.norm_eps;
    op.plus_one = spec_.norm_plus_one;
    op.rope = {spec_.rope.dims, w_.inv_freq.data(), spec_.rope.scale};
    op.q_out = q_act;
    op.kv = kv;
    b_.Qkv(op);
    b_.Attention({batch_, a.heads, a.kv_heads, a.head_dim, a.scale, a.window, nullptr, q_act, kv, out, act_ == DType::kF32});
    const kernels::LinearPart o[] = {{lw.o.get(), lw.o_bias.data(), residual, true}};
    b_.Linear({out, batch_.prompt_rows, o});
  }

  // residual += down(silu(gate(norm)) * up(norm))
  void Ffn(int layer, const LayerWeights& lw, StepScratch& s) const {
    const LayerSpec& spec = spec_.layers[static_cast<size_t>(layer)];
    const int64_t t = batch_.rows;
    MutableMatrix residual(s.residual.data(), DType::kF32, t, spec_.hidden), norm(s.norm.data(), act_, t, spec_.hidden);
    Norm(residual, lw.ffn_norm, norm);
    if (spec.dense) Mlp(norm, *lw.dense_gate, *lw.dense_up, *lw.dense_down, spec.dense->f, s, residual, true);
    if (spec.moe && observer_) observer_->Layer(layer, norm);
    if (spec.moe) Moe(*spec.moe, lw, s, norm, residual);
  }

 private:
  void Mlp(Matrix x, const kernels::LinearWeight& gate_w, const kernels::LinearWeight& up_w, const kernels::LinearWeight& down_w, int64_t f, StepScratch& s, MutableMatrix out, bool accumulate) const {
    const int64_t t = batch_.rows;
    MutableMatrix gate(s.gate.data(), DType::kF32, t, f), up(s.up.data(), DType::kF32, t, f), h(s.hidden.data(), act_, t, f);
    const kernels::LinearPart in[] = {{&gate_w, nullptr, gate}, {&up_w, nullptr, up}};
    b_.Linear({x, batch_.prompt_rows, in});
    b_.SiluMul({gate, up, h});
    const kernels::LinearPart down[] = {{&down_w, nullptr, out, accumulate}};
    b_.Linear({h, batch_.prompt_rows, down});
  }

  void Moe(const MoeSpec& moe, const LayerWeights& lw, StepScratch& s, Matrix x, MutableMatrix residual) const {
    const int64_t t = batch_.rows, picks = t * moe.top_k;
    MutableMatrix logits(s.router.data(), DType::kF32, t, moe.experts);
    const kernels::LinearPart router[] = {{lw.router.get(), nullptr, logits}};
    b_.Linear({x, batch_.prompt_rows, router});
    std::span<int32_t> ids(s.route_ids.as<int32_t>(), static_cast<size_t>(picks));
    std::span<float> weights(s.route_weights.as<float>(), static_cast<size_t>(picks));
    b_.Route({logits, moe.score, moe.top_k, moe.normalize, moe.scaling, ids, weights});
    b_.Moe({x, batch_.prompt_rows, lw.experts.get(), moe.top_k, ids, weights, residual, observer_});
    if (moe.shared == SharedExpert::kNone) return;
    MutableMatrix y(s.y.data(), DType::kF32, t, spec_.hidden), gate;
    Mlp(x, *lw.shared_gate, *lw.shared_up, *lw.shared_down, moe.shared_f, s, y, false);
    if (moe.shared == SharedExpert::kSigmoidGated) {
      gate = MutableMatrix(s.shared_gate.data(), DType::kF32, t, 1);
      const kernels::LinearPart g[] = {{lw.shared_expert_gate.get(), nullptr, gate}};
      b_.Linear({x, batch_.prompt_rows, g});
    }
    b_.AddGated({y, gate, residual});
  }

  kernels::Backend& b_;
  const ModelSpec& spec_;
  const Weights& w_;
  DType act_;
  const Batch& batch_;
  ExpertObserver* observer_;
};

base::Status Grow(kernels::Backend& b, tensor::Buffer& buffer, int64_t elements, DType dtype) {
  const size_t bytes = static_cast<size_t>(elements) * static_cast<size_t>(tensor::DTypeBits(dtype) / 8);
  if (buffer.bytes() >= bytes && buffer.data()) return {};
  buffer = {};
  HB_ASSIGN_OR_RETURN(buffer, b.Allocate(bytes));
  return {};
}

}  // namespace

// Every row's memory is as wide as the widest of its kind over all layers, which all use it.
base::Status StepScratch::Reserve(kernels::Backend& b, const ModelSpec& spec, DType act, int64_t all_rows, int64_t logit_rows) {
  if (all_rows > rows) {
    int64_t qn = 0, kn = 0, f = 0, experts = 0, picks = 0;
    for (const LayerSpec& l : spec.layers) {
      qn = std::max(qn, l.attention.heads * l.attention.head_dim);
      kn = std::max(kn, l.attention.kv_heads * l.attention.head_dim);
      if (l.dense) f = std::max(f, l.dense->f);
      if (l.moe) { f = std::max(f, l.moe->shared_f); experts = std::max(experts, l.moe->experts); picks = std::max(picks, l.moe->top_k); }
    }
    const int64_t d = spec.hidden;
    for (auto [buffer, width, dtype] : std::initializer_list<std::tuple<tensor::Buffer*, int64_t, DType>>{
             {&residual, d, DType::kF32}, {&norm, d, act}, {&q, qn, DType::kF32}, {&k, kn, DType::kF32}, {&v, kn, DType::kF32}, {&q_act, qn, act},
             {&attention, qn, act}, {&gate, f, DType::kF32}, {&up, f, DType::kF32}, {&hidden, f, act}, {&y, d, DType::kF32}, {&shared_gate, 1, DType::kF32},
             {&router, experts, DType::kF32}, {&route_ids, picks, DType::kI32}, {&route_weights, picks, DType::kF32}})
      HB_RETURN_IF_ERROR(Grow(b, *buffer, all_rows * width, dtype));
    rows = all_rows;
  }
  HB_RETURN_IF_ERROR(Grow(b, final_rows, logit_rows * spec.hidden, DType::kF32));
  HB_RETURN_IF_ERROR(Grow(b, final_norm, logit_rows * spec.hidden, act));
  return Grow(b, logits, logit_rows * spec.vocab, DType::kF32);
}

base::Result<Matrix> Model::Forward(const Step& step, StatePool& state) {
  const int64_t t = static_cast<int64_t>(step.tokens.size()), n = static_cast<int64_t>(step.logit_rows.size());
  const DType act = arithmetic_ == Arithmetic::kExact ? DType::kF32 : DType::kBF16;
  StepScratch& s = *scratch_;
  kernels::Backend& b = *backend_;
  for (int32_t token : step.tokens) HB_CHECK(0 <= token && token < spec_.vocab, "token ", token);

  HB_RETURN_IF_ERROR(s.Reserve(b, spec_, act, t, n));
  const Batch batch{t, step.prompt_rows, step.sequences};
  MutableMatrix residual(s.residual.data(), DType::kF32, t, spec_.hidden);
  b.Embed({weights_->embedding.get(), step.tokens, residual});
  LayerPass pass(b, spec_, *weights_, act, batch, observer_);
  for (int l = 0; l < static_cast<int>(spec_.layers.size()); ++l) {
    const LayerWeights& lw = weights_->layers[static_cast<size_t>(l)];
    kernels::KvLayer kv = state.Kv(l);
    kv.k_scale = lw.k_scale;
    kv.v_scale = lw.v_scale;
    pass.Attention(l, lw, s, kv);
    pass.Ffn(l, lw, s);
  }
  if (n == 0) {
    HB_RETURN_IF_ERROR(b.Synchronize());
    return Matrix(nullptr, DType::kF32, 0, spec_.vocab);
  }
  MutableMatrix rows(s.final_rows.data(), DType::kF32, n, spec_.hidden), norm(s.final_norm.data(), act, n, spec_.hidden), logits(s.logits.data(), DType::kF32, n, spec_.vocab);
  b.GatherRows({residual, step.logit_rows, rows});
  pass.Norm(rows, weights_->final_norm, norm);
  const int64_t prompt_logits = std::lower_bound(step.logit_rows.begin(), step.logit_rows.end(), step.prompt_rows) - step.logit_rows.begin();
  const kernels::LinearPart head[] = {{weights_->lm_head.get(), nullptr, logits}};
  b.Linear({norm, prompt_logits, head});
  HB_RETURN_IF_ERROR(b.Synchronize());
  return Matrix(logits);
}

}  // namespace halfbyte::model
