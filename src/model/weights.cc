#include "model/weights.h"

#include "quant/mode.h"

namespace halfbyte::model {
namespace {

using kernels::ExpertPart;
using quant::TensorId;
using quant::TensorPart;
using quant::TensorRole;
using tensor::DType;

ExpertPart PartOf(TensorRole role) {
  return role == TensorRole::kExpertGate ? ExpertPart::kGate : role == TensorRole::kExpertUp ? ExpertPart::kUp : ExpertPart::kDown;
}

// The experts of one layer as a backend wants to know them.
kernels::ExpertsSpec ExpertsSpecOf(const ModelSpec& spec, int32_t layer, const quant::QuantPlan& plan, Arithmetic arithmetic) {
  const MoeSpec& moe = *spec.layers[static_cast<size_t>(layer)].moe;
  kernels::ExpertsSpec e;
  e.experts = moe.experts;
  e.d = spec.hidden;
  e.f = moe.f;
  e.activations = quant::ModeActivations(plan.mode);
  // design section 5: h is rounded to BF16 in the rounded form except in modelopt_fp4, and always in nvfp4_online.
  e.round_hidden = quant::ModeHiddenIsBf16(plan.mode) || (arithmetic == Arithmetic::kRounded && plan.mode != quant::QuantMode::kModeloptFp4);
  e.formats.resize(static_cast<size_t>(moe.experts));
  for (int32_t i = 0; i < moe.experts; ++i)
    for (TensorRole role : {TensorRole::kExpertGate, TensorRole::kExpertUp, TensorRole::kExpertDown}) {
      const quant::PlannedMatrix* m = plan.Find({role, layer, i});
      HB_CHECK(m, "layer ", layer, " expert ", i, " is not planned");
      e.formats[static_cast<size_t>(i)][static_cast<size_t>(PartOf(role))] = m->target;
    }
  return e;
}

base::Result<Vector> MakeVector(kernels::Backend& backend, int64_t n) {
  HB_ASSIGN_OR_RETURN(tensor::Buffer buffer, backend.Allocate(static_cast<size_t>(n) * sizeof(float)));
  return Vector{std::move(buffer)};
}

}  // namespace

LinearPtr* Weights::LinearOf(const TensorId& id) {
  if (id.role == TensorRole::kLmHead) return &lm_head;
  if (id.layer < 0) return nullptr;
  LayerWeights& l = layers[static_cast<size_t>(id.layer)];
  switch (id.role) {
    case TensorRole::kQ: return &l.q;
    case TensorRole::kK: return &l.k;
    case TensorRole::kV: return &l.v;
    case TensorRole::kO: return &l.o;
    case TensorRole::kDenseGate: return &l.dense_gate;
    case TensorRole::kDenseUp: return &l.dense_up;
    case TensorRole::kDenseDown: return &l.dense_down;
    case TensorRole::kRouter: return &l.router;
    case TensorRole::kSharedGate: return &l.shared_gate;
    case TensorRole::kSharedUp: return &l.shared_up;
    case TensorRole::kSharedDown: return &l.shared_down;
    case TensorRole::kSharedExpertGate: return &l.shared_expert_gate;
    default: return nullptr;
  }
}

Vector* Weights::VectorOf(const TensorId& id, TensorPart part) {
  if (id.role == TensorRole::kFinalNorm) return &final_norm;
  if (id.layer < 0) return nullptr;
  LayerWeights& l = layers[static_cast<size_t>(id.layer)];
  if (part == TensorPart::kBias) {
    switch (id.role) {
      case TensorRole::kQ: return &l.q_bias;
      case TensorRole::kK: return &l.k_bias;
      case TensorRole::kV: return &l.v_bias;
      case TensorRole::kO: return &l.o_bias;
      default: return nullptr;
    }
  }
  switch (id.role) {
    case TensorRole::kAttentionNorm: return &l.attention_norm;
    case TensorRole::kFfnNorm: return &l.ffn_norm;
    case TensorRole::kQNorm: return &l.q_norm;
    case TensorRole::kKNorm: return &l.k_norm;
    default: return nullptr;
  }
}

base::Result<std::unique_ptr<Weights>> Weights::Create(kernels::Backend& backend, const ModelSpec& spec, const quant::QuantPlan& plan, Arithmetic arithmetic) {
  std::unique_ptr<Weights> w(new Weights(backend));
  w->layers.resize(spec.layers.size());
  for (int32_t l = 0; l < static_cast<int32_t>(spec.layers.size()); ++l) {
    if (!spec.layers[static_cast<size_t>(l)].moe) continue;
    kernels::ExpertsSpec experts = ExpertsSpecOf(spec, l, plan, arithmetic);
    if (auto s = backend.SupportsExperts(experts); !s) return base::Fail(std::move(s).error().At(base::StrCat("experts of layer ", l)));
    HB_ASSIGN_OR_RETURN(w->layers[static_cast<size_t>(l)].experts, backend.CreateExperts(std::move(experts)));
  }
  for (const quant::PlannedMatrix& m : plan.matrices) {
    const TensorId& id = m.source.id;
    w->rows_.try_emplace(id, 0);
    if (checkpoint::IsExpertRole(id.role)) continue;
    if (id.role == TensorRole::kEmbedding) {
      HB_ASSIGN_OR_RETURN(w->embedding, backend.CreateEmbedding(m.target.elem, m.source.rows, m.source.cols));
      continue;
    }
    LinearPtr* linear = w->LinearOf(id);
    HB_CHECK(linear, id.ToString());
    if (auto s = backend.SupportsLinear(m.target); !s) return base::Fail(std::move(s).error().At(id.ToString()));
    HB_ASSIGN_OR_RETURN(*linear, backend.CreateLinear(m.target, m.source.rows, m.source.cols));
  }
  for (const quant::SourceVector& v : plan.vectors) {
    w->vectors_.try_emplace({v.id, v.part}, 0);
    Vector* vector = w->VectorOf(v.id, v.part);
    if (!vector) continue;  // k and v scales live in LayerWeights
    HB_ASSIGN_OR_RETURN(*vector, MakeVector(backend, v.size));
  }
  if (spec.rope.dims) {
    HB_ASSIGN_OR_RETURN(w->inv_freq, MakeVector(backend, spec.rope.dims / 2));
    HB_RETURN_IF_ERROR(backend.Upload(w->inv_freq.buffer.data(), spec.rope.inv_freq.data(), spec.rope.inv_freq.size() * sizeof(float)));
  }
  return w;
}

int64_t Weights::PackedBytes(const kernels::Backend& backend, const ModelSpec& spec, const quant::QuantPlan& plan, Arithmetic arithmetic) {
  int64_t bytes = 0;
  for (int32_t l = 0; l < static_cast<int32_t>(spec.layers.size()); ++l)
    if (spec.layers[static_cast<size_t>(l)].moe) bytes += backend.ExpertsBytes(ExpertsSpecOf(spec, l, plan, arithmetic));
  for (const quant::PlannedMatrix& m : plan.matrices) {
    if (checkpoint::IsExpertRole(m.source.id.role)) continue;
    bytes += m.source.id.role == TensorRole::kEmbedding ? m.target.Bytes(m.source.rows, m.source.cols) : backend.LinearBytes(m.target, m.source.rows, m.source.cols);
  }
  for (const quant::SourceVector& v : plan.vectors) bytes += v.size * static_cast<int64_t>(sizeof(float));
  return bytes;
}

base::Status Weights::PutMatrix(const TensorId& id, int64_t row_begin, const tensor::QuantizedMatrix& part) {
  auto arrived = rows_.find(id);
  if (arrived == rows_.end()) return base::Fail(base::ErrorCode::kInternal, id.ToString(), " was not planned");
  arrived->second += part.rows;
  if (checkpoint::IsExpertRole(id.role))
    return backend_.PackExpert(*layers[static_cast<size_t>(id.layer)].experts, id.expert, PartOf(id.role), part);
  if (id.role == TensorRole::kEmbedding)
    return backend_.PackEmbedding(*embedding, row_begin, tensor::Matrix(part.elements, part.format.elem, part.rows, part.cols));
  return backend_.PackLinear(**LinearOf(id), row_begin, part);
}

base::Status Weights::PutVector(const TensorId& id, TensorPart part, std::span<const float> values) {
  if (part == TensorPart::kInputScale) {
    if (!checkpoint::IsExpertRole(id.role)) {
      (*LinearOf(id))->SetInputScale(values[0]);
      return {};
    }
    return backend_.SetInputScale(*layers[static_cast<size_t>(id.layer)].experts, id.expert, PartOf(id.role), values[0]);
  }
  auto arrived = vectors_.find({id, part});
  if (arrived == vectors_.end()) return base::Fail(base::ErrorCode::kInternal, id.ToString(), " ", checkpoint::TensorPartName(part), " was not planned");
  ++arrived->second;
  if (part == TensorPart::kKScale || part == TensorPart::kVScale) {
    LayerWeights& l = layers[static_cast<size_t>(id.layer)];
    (part == TensorPart::kKScale ? l.k_scale : l.v_scale) = values[0];
    return {};
  }
  Vector* v = VectorOf(id, part);
  HB_CHECK(v && v->buffer.bytes() == values.size_bytes(), id.ToString());
  return backend_.Upload(v->buffer.data(), values.data(), values.size_bytes());
}

base::Status Weights::CheckComplete(const quant::QuantPlan& plan) const {
  for (const quant::PlannedMatrix& m : plan.matrices) {
    auto it = rows_.find(m.source.id);
    const int64_t rows = it == rows_.end() ? 0 : it->second.load();
    if (rows != m.source.rows)
      return base::Fail(base::ErrorCode::kInternal, m.source.id.ToString(), ": ", rows, " of ", m.source.rows, " rows arrived");
  }
  for (const quant::SourceVector& v : plan.vectors) {
    auto it = vectors_.find({v.id, v.part});
    const int64_t times = it == vectors_.end() ? 0 : it->second.load();
    if (times != 1) return base::Fail(base::ErrorCode::kInternal, v.id.ToString(), " ", checkpoint::TensorPartName(v.part), ": arrived ", times, " times");
  }
  return {};
}

namespace {

LinearPtr LayerWeights::* const kLinears[] = {&LayerWeights::q, &LayerWeights::k, &LayerWeights::v, &LayerWeights::o, &LayerWeights::dense_gate, &LayerWeights::dense_up, &LayerWeights::dense_down,
                                              &LayerWeights::router, &LayerWeights::shared_gate, &LayerWeights::shared_up, &LayerWeights::shared_down, &LayerWeights::shared_expert_gate};
Vector LayerWeights::* const kVectors[] = {&LayerWeights::attention_norm, &LayerWeights::ffn_norm, &LayerWeights::q_bias, &LayerWeights::k_bias, &LayerWeights::v_bias, &LayerWeights::o_bias,
                                           &LayerWeights::q_norm, &LayerWeights::k_norm};

template <typename Ptr>
void Copy(Ptr& to, const Ptr& from) {
  HB_CHECK(!to == !from, "weights of another plan");
  if (to) to->CopyFrom(*from);
}

}  // namespace

void Weights::CopyFrom(const Weights& other) {
  HB_CHECK(layers.size() == other.layers.size(), "weights of another model");
  Copy(embedding, other.embedding);
  Copy(lm_head, other.lm_head);
  final_norm.buffer.CopyHost(other.final_norm.buffer);
  inv_freq.buffer.CopyHost(other.inv_freq.buffer);
  for (size_t l = 0; l < layers.size(); ++l) {
    LayerWeights& to = layers[l];
    const LayerWeights& from = other.layers[l];
    for (auto member : kLinears) Copy(to.*member, from.*member);
    for (auto member : kVectors) (to.*member).buffer.CopyHost((from.*member).buffer);
    Copy(to.experts, from.experts);
    to.k_scale = from.k_scale;
    to.v_scale = from.v_scale;
  }
}

void Weights::Drop() {
  if (embedding) embedding->Drop();
  if (lm_head) lm_head->Drop();
  for (LayerWeights& l : layers) {
    for (auto member : kLinears)
      if (l.*member) (l.*member)->Drop();
    if (l.experts) l.experts->Drop();
  }
}

}  // namespace halfbyte::model
