// Dense decoders: Llama (2, 3.x; llama3 and YaRN RoPE), Qwen3 (per-head QK norm), Qwen2 (q, k, v biases). model-families 2.13, 2.14.
#include "model/families/common.h"

namespace halfbyte::model {
namespace {

base::Result<ModelSpec> ReadDense(const ConfigReader& config, std::string_view family, kernels::QkNorm qk_norm, bool bias_default, bool o_has_bias, bool has_window) {
  HB_ASSIGN_OR_RETURN(ModelSpec spec, ReadCommon(config, family));
  HB_ASSIGN_OR_RETURN(AttentionSpec attention, ReadAttention(config));
  attention.qk_norm = qk_norm;
  HB_ASSIGN_OR_RETURN(attention.qkv_bias, config.BoolOr({"attention_bias", "qkv_bias"}, bias_default));
  attention.o_bias = attention.qkv_bias && o_has_bias;
  HB_ASSIGN_OR_RETURN(spec.rope, ReadRope(config, attention.head_dim));
  DenseSpec dense;
  HB_ASSIGN_OR_RETURN(dense.f, config.Size({"intermediate_size"}, 1 << 20));
  HB_ASSIGN_OR_RETURN(bool mlp_bias, config.BoolOr({"mlp_bias"}, false));
  if (mlp_bias) return base::Fail(base::ErrorCode::kUnsupported, "config.json: mlp_bias true");
  HB_ASSIGN_OR_RETURN(int64_t layers, config.Size({"num_hidden_layers"}, 1 << 12));
  spec.layers.assign(static_cast<size_t>(layers), LayerSpec{attention, dense, std::nullopt});
  HB_ASSIGN_OR_RETURN(int64_t full_layers, config.IntOr({"max_window_layers"}, 28));
  for (int64_t i = 0; has_window && i < layers; ++i) {
    HB_ASSIGN_OR_RETURN(spec.layers[static_cast<size_t>(i)].attention.window, SlidingWindow(config, i, i >= full_layers));
  }
  spec.names = DecoderNames();
  return spec;
}

}  // namespace

base::Result<ModelSpec> ParseLlama(const ConfigReader& config) { return ReadDense(config, "llama", kernels::QkNorm::kNone, false, true, false); }
base::Result<ModelSpec> ParseQwen3(const ConfigReader& config) { return ReadDense(config, "qwen3", kernels::QkNorm::kPerHead, false, true, true); }
base::Result<ModelSpec> ParseQwen2(const ConfigReader& config) { return ReadDense(config, "qwen2", kernels::QkNorm::kNone, true, false, true); }

}  // namespace halfbyte::model
