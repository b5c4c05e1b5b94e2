// Pieces that families share. A family file is data and a recipe over these; it has no forward code.
#pragma once

#include "model/config_reader.h"
#include "model/rope.h"
#include "model/spec.h"

namespace halfbyte::model {

// Sizes, norms, positions, tied head, stop tokens; layers are added by the family. norm_eps: the family's where config.json does not say.
base::Result<ModelSpec> ReadCommon(const ConfigReader& config, std::string_view family, double norm_eps = 1e-6);

// Heads, head_dim (never hidden / heads where config.json has one: trap 3), scale; the rest is the family's.
base::Result<AttentionSpec> ReadAttention(const ConfigReader& config);

// sliding_window in tokens, 0 for none; a negative one is an error.
base::Result<int64_t> ReadWindow(const ConfigReader& config, int64_t otherwise);

// The Qwen families' sliding window of a layer, 0 for none: only where use_sliding_window is true (releases say false); then layer_types decides, and
// where that is absent the family's rule does, whose answer for this layer is `by_rule`.
base::Result<int64_t> SlidingWindow(const ConfigReader& config, int64_t layer, bool by_rule);

// The expert count has three names and any of them may stand in a file of any family (trap 1).
base::Result<int64_t> ReadExpertCount(const ConfigReader& config);

// Where the layer is MoE: by the tensors of its router and experts where tensors are known (trap 17), else by mlp_only_layers and decoder_sparse_step.
base::Result<bool> LayerIsMoe(const ConfigReader& config, int64_t layer, std::string_view router_stem);

// Names that nearly every family has: embedding, norms, head, q/k/v/o, and the dense gate/up/down_proj.
std::vector<checkpoint::NameRule> DecoderNames();
// Adds experts called mlp.experts.N.{gate,up,down}_proj, per expert or stacked ([E, 2F, D], gate rows first), and the router mlp.gate.
void AddExpertNames(std::vector<checkpoint::NameRule>& names);

}  // namespace halfbyte::model
