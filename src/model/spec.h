// ModelSpec: everything about a model that is not a weight, as plain data. A family file (families/<family>.cc) fills it from config.json; the
// layer code reads it and knows no family.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/name_rules.h"
#include "kernels/api/ops.h"

namespace halfbyte::model {

struct Rope {
  int64_t dims = 0;              // rotated dims of each head; 0: none
  std::vector<float> inv_freq;   // [dims/2]
  float scale = 1.0f;            // multiplies cos and sin (YaRN's attention factor)
};

struct AttentionSpec {
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  float scale = 0;               // head_dim^-1/2 unless the family says otherwise
  kernels::QkNorm qk_norm = kernels::QkNorm::kNone;
  bool qkv_bias = false, o_bias = false;
  float clip = 0;                // clip_qkv, 0: none
  int64_t window = 0;            // sliding window in tokens, 0: none
};

struct DenseSpec {
  int64_t f = 0;                 // intermediate width; SwiGLU
};

enum class SharedExpert : uint8_t { kNone, kPlain, kSigmoidGated };

struct MoeSpec {
  int64_t experts = 0, top_k = 0, f = 0;
  kernels::RouterScore score = kernels::RouterScore::kSoftmax;
  bool normalize = false;
  float scaling = 1.0f;
  SharedExpert shared = SharedExpert::kNone;
  int64_t shared_f = 0;
};

// One decoder layer: x += attention(norm(x)); x += ffn(norm(x)), the ffn being dense or MoE.
struct LayerSpec {
  AttentionSpec attention;
  std::optional<DenseSpec> dense;
  std::optional<MoeSpec> moe;
};

struct ModelSpec {
  std::string family;            // "qwen3_moe"
  int64_t vocab = 0, hidden = 0;
  float norm_eps = 0;
  bool norm_plus_one = false;    // RMSNorm weights are stored zero-centred (Qwen3-Next)
  bool tied = false;             // lm_head is the embedding; decided by the tensors where they are known
  Rope rope;
  int64_t max_positions = 0;
  std::vector<LayerSpec> layers;
  int64_t mtp_layers = 0;        // multi-token prediction layers that the files have behind them: known, not loaded
  std::vector<int32_t> eos;      // union of config.json's and generation_config.json's
  std::optional<int32_t> bos;
  std::vector<checkpoint::NameRule> names;

  bool has_experts() const { for (const LayerSpec& l : layers) if (l.moe) return true; return false; }
};

}  // namespace halfbyte::model
