// OLMoE (1B-7B): QK norm over the whole projection, optional clamp of q, k, v, router not renormalised. model-families 2.4.
#include "model/families/common.h"

namespace halfbyte::model {

base::Result<ModelSpec> ParseOlmoe(const ConfigReader& config) {
  HB_ASSIGN_OR_RETURN(ModelSpec spec, ReadCommon(config, "olmoe", 1e-5));
  HB_ASSIGN_OR_RETURN(AttentionSpec attention, ReadAttention(config));
  attention.qk_norm = kernels::QkNorm::kFlat;
  HB_ASSIGN_OR_RETURN(double clip, config.DoubleOr({"clip_qkv"}, 0.0));
  attention.clip = static_cast<float>(clip);
  HB_ASSIGN_OR_RETURN(spec.rope, ReadRope(config, attention.head_dim));
  MoeSpec moe;
  HB_ASSIGN_OR_RETURN(moe.experts, ReadExpertCount(config));
  HB_ASSIGN_OR_RETURN(moe.top_k, config.Size({"num_experts_per_tok"}, moe.experts));
  HB_ASSIGN_OR_RETURN(moe.f, config.Size({"intermediate_size"}, 1 << 20));
  HB_ASSIGN_OR_RETURN(moe.normalize, config.BoolOr({"norm_topk_prob"}, false));
  HB_ASSIGN_OR_RETURN(int64_t layers, config.Size({"num_hidden_layers"}, 1 << 12));
  spec.layers.assign(static_cast<size_t>(layers), LayerSpec{attention, std::nullopt, moe});
  spec.names = DecoderNames();
  AddExpertNames(spec.names);
  return spec;
}

}  // namespace halfbyte::model
