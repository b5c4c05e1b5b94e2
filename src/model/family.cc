#include "model/family.h"


namespace halfbyte::model {

#define HB_FAMILY(parser, type, architecture) base::Result<ModelSpec> Parse##parser(const ConfigReader& config);
#include "model/families/families.def"
#undef HB_FAMILY

namespace {

struct Family { std::string_view type, architecture; base::Result<ModelSpec> (*parse)(const ConfigReader&); };
constexpr Family kFamilies[] = {
#define HB_FAMILY(parser, type, architecture) {type, architecture, Parse##parser},
#include "model/families/families.def"
#undef HB_FAMILY
};

using checkpoint::TensorId;
using checkpoint::TensorPart;
using checkpoint::TensorRole;
using quant::ExpectedTensor;

void AddLayer(const ModelSpec& spec, int32_t l, std::vector<ExpectedTensor>& out) {
  const LayerSpec& layer = spec.layers[static_cast<size_t>(l)];
  const AttentionSpec& a = layer.attention;
  const int64_t d = spec.hidden, q = a.heads * a.head_dim, kv = a.kv_heads * a.head_dim;
  auto matrix = [&](TensorRole role, int64_t rows, int64_t cols, int32_t expert = -1) { out.push_back({{role, l, expert}, TensorPart::kWeight, rows, cols}); };
  auto vector = [&](TensorRole role, int64_t n, TensorPart part = TensorPart::kWeight) { out.push_back({{role, l, -1}, part, n, 0}); };
  vector(TensorRole::kAttentionNorm, d);
  vector(TensorRole::kFfnNorm, d);
  matrix(TensorRole::kQ, q, d);
  matrix(TensorRole::kK, kv, d);
  matrix(TensorRole::kV, kv, d);
  matrix(TensorRole::kO, d, q);
  if (a.qkv_bias) { vector(TensorRole::kQ, q, TensorPart::kBias); vector(TensorRole::kK, kv, TensorPart::kBias); vector(TensorRole::kV, kv, TensorPart::kBias); }
  if (a.o_bias) vector(TensorRole::kO, d, TensorPart::kBias);
  if (a.qk_norm != kernels::QkNorm::kNone) {
    const bool flat = a.qk_norm == kernels::QkNorm::kFlat;
    vector(TensorRole::kQNorm, flat ? q : a.head_dim);
    vector(TensorRole::kKNorm, flat ? kv : a.head_dim);
  }
  if (layer.dense) {
    matrix(TensorRole::kDenseGate, layer.dense->f, d);
    matrix(TensorRole::kDenseUp, layer.dense->f, d);
    matrix(TensorRole::kDenseDown, d, layer.dense->f);
  }
  if (const auto& moe = layer.moe) {
    matrix(TensorRole::kRouter, moe->experts, d);
    for (int32_t e = 0; e < moe->experts; ++e) {
      matrix(TensorRole::kExpertGate, moe->f, d, e);
      matrix(TensorRole::kExpertUp, moe->f, d, e);
      matrix(TensorRole::kExpertDown, d, moe->f, e);
    }
    if (moe->shared != SharedExpert::kNone) {
      matrix(TensorRole::kSharedGate, moe->shared_f, d);
      matrix(TensorRole::kSharedUp, moe->shared_f, d);
      matrix(TensorRole::kSharedDown, d, moe->shared_f);
    }
    if (moe->shared == SharedExpert::kSigmoidGated) matrix(TensorRole::kSharedExpertGate, 1, d);
  }
}

// "architectures": a list of names; empty where there is none.
base::Result<std::string> FirstArchitecture(const base::Json& config) {
  const base::Json* list = config.Find("architectures");
  if (!list || list->is_null()) return std::string();
  if (!list->is_array() || (!list->as_array().empty() && !list->as_array()[0].is_string()))
    return base::Fail(base::ErrorCode::kBadFile, "config.json: \"architectures\" is ", list->Dump(), "; a list of names is wanted");
  return list->as_array().empty() ? std::string() : list->as_array()[0].as_string();
}

}  // namespace

base::Result<ModelSpec> ReadSpec(const ConfigReader& config) {
  HB_ASSIGN_OR_RETURN(std::string type, config.text().GetStringOr("model_type", ""));
  HB_ASSIGN_OR_RETURN(const std::string architecture, FirstArchitecture(config.text()));
  for (const Family& f : kFamilies) if (f.type == type) return f.parse(config);
  for (const Family& f : kFamilies) if (f.architecture == architecture) return f.parse(config);
  std::string known;
  for (const Family& f : kFamilies) known += (known.empty() ? "" : ", ") + std::string(f.type);
  return base::Fail(base::Error(base::ErrorCode::kUnsupported, base::StrCat("config.json: unknown model family \"", type.empty() ? architecture : type, "\"")).Hint("known: " + known));
}

std::vector<ExpectedTensor> ExpectedTensors(const ModelSpec& spec) {
  std::vector<ExpectedTensor> out;
  out.push_back({{TensorRole::kEmbedding, -1, -1}, TensorPart::kWeight, spec.vocab, spec.hidden});
  for (int32_t l = 0; l < static_cast<int32_t>(spec.layers.size()); ++l) AddLayer(spec, l, out);
  out.push_back({{TensorRole::kFinalNorm, -1, -1}, TensorPart::kWeight, spec.hidden, 0});
  out.push_back({{TensorRole::kLmHead, -1, -1}, TensorPart::kWeight, spec.vocab, spec.hidden});
  return out;
}

}  // namespace halfbyte::model
