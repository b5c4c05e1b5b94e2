#include "model/families/common.h"

#include <algorithm>
#include <cmath>

namespace halfbyte::model {
namespace {

using checkpoint::NameRule;
using checkpoint::StackedLayout;
using checkpoint::TensorRole;

// eos_token_id may be an integer or a list, and the two files often disagree: the union is safest (trap 20).
base::Status AddTokenIds(const base::Json& json, std::string_view key, std::string_view file, std::vector<int32_t>& out) {
  const base::Json* v = json.Find(key);
  if (!v || v->is_null()) return {};
  base::Json::Array one{*v};
  for (const base::Json& id : v->is_array() ? v->as_array() : one) {
    if (!id.is_int() || id.as_int() < 0 || id.as_int() > INT32_MAX) return base::Fail(base::ErrorCode::kBadFile, file, ": \"", key, "\" holds ", id.Dump());
    if (int32_t n = static_cast<int32_t>(id.as_int()); std::find(out.begin(), out.end(), n) == out.end()) out.push_back(n);
  }
  return {};
}

}  // namespace

base::Result<ModelSpec> ReadCommon(const ConfigReader& config, std::string_view family, double norm_eps) {
  ModelSpec spec;
  spec.family = family;
  HB_ASSIGN_OR_RETURN(spec.hidden, config.Size({"hidden_size"}, 1 << 20));
  HB_ASSIGN_OR_RETURN(spec.vocab, config.Size({"vocab_size"}, 1 << 26));
  HB_ASSIGN_OR_RETURN(double eps, config.DoubleOr({"rms_norm_eps", "layer_norm_epsilon", "norm_eps"}, norm_eps));
  if (!(eps >= 0 && eps < 1)) return base::Fail(base::ErrorCode::kBadFile, "config.json: \"rms_norm_eps\" is ", eps, "; a small positive number is wanted");
  spec.norm_eps = static_cast<float>(eps);
  HB_ASSIGN_OR_RETURN(spec.max_positions, config.SizeOr({"max_position_embeddings"}, 4096));
  HB_ASSIGN_OR_RETURN(spec.mtp_layers, config.IntOr({"num_nextn_predict_layers"}, 0));
  if (spec.mtp_layers < 0 || spec.mtp_layers > 1 << 12) return base::Fail(base::ErrorCode::kBadFile, "config.json: \"num_nextn_predict_layers\" is ", spec.mtp_layers);
  HB_ASSIGN_OR_RETURN(spec.tied, config.BoolOr({"tie_word_embeddings"}, false));
  HB_RETURN_IF_ERROR(AddTokenIds(config.generation(), "eos_token_id", "generation_config.json", spec.eos));
  HB_RETURN_IF_ERROR(AddTokenIds(config.text(), "eos_token_id", "config.json", spec.eos));
  std::vector<int32_t> bos;
  HB_RETURN_IF_ERROR(AddTokenIds(config.text(), "bos_token_id", "config.json", bos));
  if (!bos.empty()) spec.bos = bos.front();
  HB_ASSIGN_OR_RETURN(std::string act, config.text().GetStringOr("hidden_act", "silu"));
  if (act != "silu" && act != "swish") return base::Fail(base::ErrorCode::kUnsupported, "config.json: hidden_act \"", act, "\"; ", family, " is implemented with silu");
  return spec;
}

base::Result<AttentionSpec> ReadAttention(const ConfigReader& config) {
  AttentionSpec a;
  HB_ASSIGN_OR_RETURN(int64_t hidden, config.Size({"hidden_size"}, 1 << 20));
  HB_ASSIGN_OR_RETURN(a.heads, config.Size({"num_attention_heads"}, 1 << 14));
  HB_ASSIGN_OR_RETURN(a.kv_heads, config.SizeOr({"num_key_value_heads"}, a.heads));
  HB_ASSIGN_OR_RETURN(a.head_dim, config.SizeOr({"head_dim"}, hidden / a.heads));
  if (a.heads % a.kv_heads || a.head_dim > 4096 || a.head_dim % 2 || a.kv_heads > a.heads)
    return base::Fail(base::ErrorCode::kBadFile, "config.json: ", a.heads, " query heads, ", a.kv_heads, " key heads of ", a.head_dim, " do not fit together");
  a.scale = 1.0f / std::sqrt(static_cast<float>(a.head_dim));
  return a;
}

base::Result<int64_t> ReadWindow(const ConfigReader& config, int64_t otherwise) {
  HB_ASSIGN_OR_RETURN(int64_t window, config.IntOr({"sliding_window"}, otherwise));
  if (window < 0) return base::Fail(base::ErrorCode::kBadFile, "config.json: \"sliding_window\" is ", window);
  return window;
}

base::Result<int64_t> SlidingWindow(const ConfigReader& config, int64_t layer, bool by_rule) {
  HB_ASSIGN_OR_RETURN(bool used, config.BoolOr({"use_sliding_window"}, false));
  HB_ASSIGN_OR_RETURN(int64_t window, ReadWindow(config, 4096));
  if (!used) return 0;
  if (const base::Json* types = config.text().Find("layer_types"); types && types->is_array()) {
    const auto& list = types->as_array();
    if (static_cast<int64_t>(list.size()) <= layer || !list[static_cast<size_t>(layer)].is_string())
      return base::Fail(base::ErrorCode::kBadFile, "config.json: \"layer_types\" has no type for layer ", layer);
    by_rule = list[static_cast<size_t>(layer)].as_string() == "sliding_attention";
  }
  return by_rule ? window : 0;
}

base::Result<int64_t> ReadExpertCount(const ConfigReader& config) { return config.Size({"num_experts", "num_local_experts", "n_routed_experts"}, 1 << 14); }

base::Result<bool> LayerIsMoe(const ConfigReader& config, int64_t layer, std::string_view router_stem) {
  HB_ASSIGN_OR_RETURN(int64_t step, config.SizeOr({"decoder_sparse_step"}, 1));
  if (config.knows_tensors()) {
    const std::string parent = base::StrCat("model.layers.", layer, ".", router_stem.substr(0, router_stem.rfind('.') + 1));
    // The experts too: a layer whose router alone is missing is an incomplete one, not a dense one.
    for (std::string_view name : {"experts.0.down_proj.weight", "experts.0.down_proj.weight_packed", "experts.down_proj"})
      if (config.HasTensor(parent + std::string(name))) return true;
    return config.HasTensor(base::StrCat("model.layers.", layer, ".", router_stem, ".weight"));
  }
  if (const base::Json* only = config.text().Find("mlp_only_layers"); only && only->is_array())
    for (const base::Json& l : only->as_array()) if (l.is_int() && l.as_int() == layer) return false;
  return (layer + 1) % step == 0;
}

std::vector<NameRule> DecoderNames() {
  return {
      {"model.embed_tokens", TensorRole::kEmbedding}, {"model.norm", TensorRole::kFinalNorm}, {"lm_head", TensorRole::kLmHead},
      {"model.layers.{L}.input_layernorm", TensorRole::kAttentionNorm}, {"model.layers.{L}.post_attention_layernorm", TensorRole::kFfnNorm},
      {"model.layers.{L}.self_attn.q_proj", TensorRole::kQ}, {"model.layers.{L}.self_attn.k_proj", TensorRole::kK},
      {"model.layers.{L}.self_attn.v_proj", TensorRole::kV}, {"model.layers.{L}.self_attn.o_proj", TensorRole::kO},
      {"model.layers.{L}.self_attn.q_norm", TensorRole::kQNorm}, {"model.layers.{L}.self_attn.k_norm", TensorRole::kKNorm},
      {"model.layers.{L}.mlp.gate_proj", TensorRole::kDenseGate}, {"model.layers.{L}.mlp.up_proj", TensorRole::kDenseUp},
      {"model.layers.{L}.mlp.down_proj", TensorRole::kDenseDown},
  };
}

void AddExpertNames(std::vector<NameRule>& names) {
  for (NameRule rule : {NameRule{"model.layers.{L}.mlp.gate", TensorRole::kRouter},
                        NameRule{"model.layers.{L}.mlp.experts.{E}.gate_proj", TensorRole::kExpertGate},
                        NameRule{"model.layers.{L}.mlp.experts.{E}.up_proj", TensorRole::kExpertUp},
                        NameRule{"model.layers.{L}.mlp.experts.{E}.down_proj", TensorRole::kExpertDown},
                        NameRule{"model.layers.{L}.mlp.experts.gate_up_proj", TensorRole::kExpertGateUp, StackedLayout::kRows},
                        NameRule{"model.layers.{L}.mlp.experts.down_proj", TensorRole::kExpertDown, StackedLayout::kRows}})
    names.push_back(std::move(rule));
}

}  // namespace halfbyte::model
