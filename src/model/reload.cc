#include "model/reload.h"

namespace halfbyte::model {
namespace {

template <typename... Parts>
base::Status Differs(const Parts&... parts) {
  return base::Fail(base::Error(base::ErrorCode::kInvalidArgument, base::StrCat(parts..., ": these weights do not fit the running model")).Hint("start the program with them instead"));
}

// What the running model's caches, requests and compiled choices rest on.
base::Status CheckSpec(const ModelSpec& have, const ModelSpec& want) {
  if (want.family != have.family) return Differs("family ", want.family, " for ", have.family);
  if (want.vocab != have.vocab || want.hidden != have.hidden || want.layers.size() != have.layers.size()) return Differs("another vocabulary, width or number of layers");
  if (want.max_positions != have.max_positions) return Differs("max_position_embeddings ", want.max_positions, " for ", have.max_positions);
  if (want.eos != have.eos) return Differs("other end tokens");
  if (want.rope.dims != have.rope.dims) return Differs("another number of rotated dimensions");
  for (size_t l = 0; l < have.layers.size(); ++l) {
    const AttentionSpec &a = have.layers[l].attention, &b = want.layers[l].attention;
    if (a.heads != b.heads || a.kv_heads != b.kv_heads || a.head_dim != b.head_dim || a.window != b.window) return Differs("layer ", l, " has other attention heads");
    const auto &m = have.layers[l].moe, &n = want.layers[l].moe;
    if (m.has_value() != n.has_value() || (m && (m->experts != n->experts || m->top_k != n->top_k || m->f != n->f || m->shared != n->shared))) return Differs("layer ", l, " has other experts");
  }
  return {};
}

base::Status CheckPlan(const quant::QuantPlan& have, const quant::QuantPlan& want) {
  if (want.mode != have.mode) return Differs("quantization ", quant::ModeName(want.mode), " for ", quant::ModeName(have.mode));
  if (want.matrices.size() != have.matrices.size() || want.vectors.size() != have.vectors.size()) return Differs("another set of tensors");
  if (want.tied != have.tied) return Differs("a head of its own against one tied to the embedding");
  auto sizes = [](const quant::QuantPlan& plan) {
    std::map<std::pair<quant::TensorId, quant::TensorPart>, int64_t> sizes;
    for (const quant::SourceVector& v : plan.vectors) sizes[{v.id, v.part}] = v.size;
    return sizes;
  };
  if (sizes(have) != sizes(want)) return Differs("other norms or biases");
  for (const quant::PlannedMatrix& m : have.matrices) {
    const quant::PlannedMatrix* other = want.Find(m.source.id);
    if (!other) return Differs(m.source.id.ToString(), " is missing");
    if (!(other->target == m.target) || other->source.rows != m.source.rows || other->source.cols != m.source.cols) return Differs(m.source.id.ToString(), " has another shape or format");
  }
  return {};
}

}  // namespace

base::Result<Reload> Reload::Prepare(Model& model, const quant::QuantPlan& plan, const std::filesystem::path& folder, const LoadSettings& settings) {
  // The headers first: a model that does not fit is refused before it is read.
  HB_ASSIGN_OR_RETURN(const Prepared prepared, model::Prepare(folder, settings, model.backend().name()));
  HB_RETURN_IF_ERROR(CheckSpec(model.spec(), prepared.spec));
  HB_RETURN_IF_ERROR(CheckPlan(plan, prepared.plan));
  HB_ASSIGN_OR_RETURN(LoadedWeights loaded, LoadWeights(model.backend(), folder, settings, model.arithmetic()));
  // The files were opened anew: what was checked may have been replaced meanwhile.
  HB_RETURN_IF_ERROR(CheckSpec(model.spec(), loaded.spec));
  HB_RETURN_IF_ERROR(CheckPlan(plan, loaded.plan));
  return Reload(std::move(loaded));
}

void Reload::Apply(Model& model) {
  model.weights().CopyFrom(*loaded_.weights);
  model.SetSpec(std::move(loaded_.spec));
}

}  // namespace halfbyte::model
