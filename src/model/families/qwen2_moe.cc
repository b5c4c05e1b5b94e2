// Qwen2-MoE (Qwen1.5-MoE-A2.7B, Qwen2-57B-A14B): q, k, v biases, a shared expert behind a sigmoid gate, router weights not renormalised. model-families 2.2.
#include "model/families/common.h"

namespace halfbyte::model {

base::Result<ModelSpec> ParseQwen2Moe(const ConfigReader& config) {
  HB_ASSIGN_OR_RETURN(ModelSpec spec, ReadCommon(config, "qwen2_moe"));
  HB_ASSIGN_OR_RETURN(AttentionSpec attention, ReadAttention(config));
  HB_ASSIGN_OR_RETURN(attention.qkv_bias, config.BoolOr({"qkv_bias"}, true));
  HB_ASSIGN_OR_RETURN(spec.rope, ReadRope(config, attention.head_dim));
  HB_ASSIGN_OR_RETURN(int64_t window_layers, config.IntOr({"max_window_layers"}, 28));
  HB_ASSIGN_OR_RETURN(int64_t layers, config.Size({"num_hidden_layers"}, 1 << 12));
  for (int64_t i = 0; i < layers; ++i) {
    LayerSpec layer{attention, std::nullopt, std::nullopt};
    HB_ASSIGN_OR_RETURN(layer.attention.window, SlidingWindow(config, i, i % 2 == 0 && i < window_layers));  // every second one, as transformers has it
    HB_ASSIGN_OR_RETURN(bool is_moe, LayerIsMoe(config, i, "mlp.gate"));
    if (is_moe) {
      MoeSpec moe;
      HB_ASSIGN_OR_RETURN(moe.experts, ReadExpertCount(config));
      HB_ASSIGN_OR_RETURN(moe.top_k, config.Size({"num_experts_per_tok"}, moe.experts));
      HB_ASSIGN_OR_RETURN(moe.f, config.Size({"moe_intermediate_size"}, 1 << 20));
      HB_ASSIGN_OR_RETURN(moe.normalize, config.BoolOr({"norm_topk_prob"}, false));
      moe.shared = SharedExpert::kSigmoidGated;
      HB_ASSIGN_OR_RETURN(moe.shared_f, config.Size({"shared_expert_intermediate_size"}, 1 << 20));
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
  using checkpoint::TensorRole;
  spec.names.push_back({"model.layers.{L}.mlp.shared_expert.gate_proj", TensorRole::kSharedGate});
  spec.names.push_back({"model.layers.{L}.mlp.shared_expert.up_proj", TensorRole::kSharedUp});
  spec.names.push_back({"model.layers.{L}.mlp.shared_expert.down_proj", TensorRole::kSharedDown});
  spec.names.push_back({"model.layers.{L}.mlp.shared_expert_gate", TensorRole::kSharedExpertGate});
  return spec;
}

}  // namespace halfbyte::model
