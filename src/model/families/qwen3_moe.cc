// Qwen3-MoE (Qwen3-30B-A3B, 235B-A22B, Coder): per-head QK norm, softmax router, no shared expert. model-families 2.1.
#include "model/families/common.h"

namespace halfbyte::model {

base::Result<ModelSpec> ParseQwen3Moe(const ConfigReader& config) {
  HB_ASSIGN_OR_RETURN(ModelSpec spec, ReadCommon(config, "qwen3_moe"));
  HB_ASSIGN_OR_RETURN(AttentionSpec attention, ReadAttention(config));
  attention.qk_norm = kernels::QkNorm::kPerHead;
  HB_ASSIGN_OR_RETURN(bool bias, config.BoolOr({"attention_bias"}, false));
  attention.qkv_bias = attention.o_bias = bias;
  HB_ASSIGN_OR_RETURN(spec.rope, ReadRope(config, attention.head_dim));
  HB_ASSIGN_OR_RETURN(int64_t layers, config.Size({"num_hidden_layers"}, 1 << 12));
  for (int64_t i = 0; i < layers; ++i) {
    LayerSpec layer{attention, std::nullopt, std::nullopt};
    HB_ASSIGN_OR_RETURN(layer.attention.window, SlidingWindow(config, i, true));
    HB_ASSIGN_OR_RETURN(bool is_moe, LayerIsMoe(config, i, "mlp.gate"));
    if (is_moe) {
      MoeSpec moe;
      HB_ASSIGN_OR_RETURN(moe.experts, ReadExpertCount(config));
      HB_ASSIGN_OR_RETURN(moe.top_k, config.Size({"num_experts_per_tok"}, moe.experts));
      HB_ASSIGN_OR_RETURN(moe.f, config.Size({"moe_intermediate_size"}, 1 << 20));
      HB_ASSIGN_OR_RETURN(moe.normalize, config.BoolOr({"norm_topk_prob"}, false));  // the class's default; releases say true (trap 14)
      layer.moe = moe;
    } else {
      DenseSpec dense;
      HB_ASSIGN_OR_RETURN(dense.f, config.Size({"intermediate_size"}, 1 << 20));
      layer.dense = dense;
    }
    spec.layers.push_back(layer);
  }
  spec.names = DecoderNames();
  AddExpertNames(spec.names);
  return spec;
}

}  // namespace halfbyte::model
