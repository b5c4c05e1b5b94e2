// Mixtral (8x7B, 8x22B): experts w1 (gate), w3 (up), w2 (down) under block_sparse_moe, router always renormalised. model-families 2.3.
#include "model/families/common.h"

namespace halfbyte::model {

base::Result<ModelSpec> ParseMixtral(const ConfigReader& config) {
  HB_ASSIGN_OR_RETURN(ModelSpec spec, ReadCommon(config, "mixtral", 1e-5));
  HB_ASSIGN_OR_RETURN(AttentionSpec attention, ReadAttention(config));
  HB_ASSIGN_OR_RETURN(attention.window, ReadWindow(config, 0));
  HB_ASSIGN_OR_RETURN(spec.rope, ReadRope(config, attention.head_dim, 1e6));
  MoeSpec moe;
  HB_ASSIGN_OR_RETURN(moe.experts, ReadExpertCount(config));
  HB_ASSIGN_OR_RETURN(moe.top_k, config.Size({"num_experts_per_tok"}, moe.experts));
  HB_ASSIGN_OR_RETURN(moe.f, config.Size({"intermediate_size"}, 1 << 20));
  moe.normalize = true;
  HB_ASSIGN_OR_RETURN(int64_t layers, config.Size({"num_hidden_layers"}, 1 << 12));
  spec.layers.assign(static_cast<size_t>(layers), LayerSpec{attention, std::nullopt, moe});
  spec.names = DecoderNames();
  using checkpoint::NameRule;
  using checkpoint::TensorRole;
  for (NameRule rule : {NameRule{"model.layers.{L}.block_sparse_moe.gate", TensorRole::kRouter},
                        NameRule{"model.layers.{L}.block_sparse_moe.experts.{E}.w1", TensorRole::kExpertGate},
                        NameRule{"model.layers.{L}.block_sparse_moe.experts.{E}.w3", TensorRole::kExpertUp},
                        NameRule{"model.layers.{L}.block_sparse_moe.experts.{E}.w2", TensorRole::kExpertDown},
                        // llm-compressor writes its files with these (numerics-and-formats, errata 7)
                        NameRule{"model.layers.{L}.block_sparse_moe.experts.{E}.gate_proj", TensorRole::kExpertGate},
                        NameRule{"model.layers.{L}.block_sparse_moe.experts.{E}.up_proj", TensorRole::kExpertUp},
                        NameRule{"model.layers.{L}.block_sparse_moe.experts.{E}.down_proj", TensorRole::kExpertDown}})
    spec.names.push_back(std::move(rule));
  return spec;
}

}  // namespace halfbyte::model
