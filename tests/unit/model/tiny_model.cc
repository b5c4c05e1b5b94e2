#include "unit/model/tiny_model.h"

#include <numeric>

#include "base/check.h"
#include "numerics/bf16.h"

namespace halfbyte::model {

std::string Bf16Of(const std::vector<float>& values) {
  std::string out;
  for (float v : values) {
    const uint16_t bits = numerics::FloatToBf16(v);
    out.append(reinterpret_cast<const char*>(&bits), 2);
  }
  return out;
}

std::string RandomBf16(int64_t n, uint64_t seed) {
  std::vector<float> values;
  uint64_t state = seed * 0x9E3779B97F4A7C15ull + 1;
  for (int64_t i = 0; i < n; ++i) {
    float sum = 0;
    for (int k = 0; k < 4; ++k) sum += static_cast<float>((state = state * 6364136223846793005ull + 1442695040888963407ull) >> 40) / 16777216.0f - 0.5f;
    values.push_back(0.17f * sum);
  }
  return Bf16Of(values);
}

TinyModel::TinyModel(const TinySizes& s) {
  config = *base::Json::Parse(base::StrCat(R"({"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_act": "silu", "hidden_size": )", s.hidden,
      R"(, "num_attention_heads": )", s.heads, R"(, "num_key_value_heads": )", s.kv_heads, R"(, "head_dim": )", s.head_dim, R"(, "num_hidden_layers": )", s.layers,
      R"(, "num_experts": )", s.experts, R"(, "num_experts_per_tok": )", s.top_k, R"(, "moe_intermediate_size": )", s.f, R"(, "intermediate_size": 64, "norm_topk_prob": true,)",
      R"( "vocab_size": )", s.vocab, R"(, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "max_position_embeddings": 128, "tie_word_embeddings": false, "eos_token_id": 2})"));
  uint64_t seed = 1;
  auto matrix = [&](const std::string& name, int64_t rows, int64_t cols) { tensors.push_back({name, "BF16", base::StrCat("[", rows, ",", cols, "]"), RandomBf16(rows * cols, seed++)}); };
  auto norm = [&](const std::string& name, int64_t n) { tensors.push_back({name, "BF16", base::StrCat("[", n, "]"), Bf16Of(std::vector<float>(static_cast<size_t>(n), 1.0f))}); };
  matrix("model.embed_tokens.weight", s.vocab, s.hidden);
  for (int64_t l = 0; l < s.layers; ++l) {
    const std::string layer = base::StrCat("model.layers.", l, ".");
    norm(layer + "input_layernorm.weight", s.hidden);
    norm(layer + "post_attention_layernorm.weight", s.hidden);
    norm(layer + "self_attn.q_norm.weight", s.head_dim);
    norm(layer + "self_attn.k_norm.weight", s.head_dim);
    matrix(layer + "self_attn.q_proj.weight", s.heads * s.head_dim, s.hidden);
    matrix(layer + "self_attn.k_proj.weight", s.kv_heads * s.head_dim, s.hidden);
    matrix(layer + "self_attn.v_proj.weight", s.kv_heads * s.head_dim, s.hidden);
    matrix(layer + "self_attn.o_proj.weight", s.hidden, s.heads * s.head_dim);
    matrix(layer + "mlp.gate.weight", s.experts, s.hidden);
    for (int64_t e = 0; e < s.experts; ++e) {
      const std::string expert = base::StrCat(layer, "mlp.experts.", e, ".");
      matrix(expert + "gate_proj.weight", s.f, s.hidden);
      matrix(expert + "up_proj.weight", s.f, s.hidden);
      matrix(expert + "down_proj.weight", s.hidden, s.f);
    }
  }
  norm("model.norm.weight", s.hidden);
  matrix("lm_head.weight", s.vocab, s.hidden);
}

RawTensor& TinyModel::at(const std::string& name) {
  for (RawTensor& t : tensors) if (t.name == name) return t;
  HB_CHECK(false, name, " is not in the tiny model");
  return tensors[0];
}

void TinyModel::Set(const std::string& name, const std::string& dtype, const std::string& shape, std::string data) {
  Remove(name);
  tensors.push_back({name, dtype, shape, std::move(data)});
}

void TinyModel::Remove(const std::string& name) {
  std::erase_if(tensors, [&](const RawTensor& t) { return t.name == name; });
}

void TinyModel::Write(const TemporaryFolder& folder, int shards, std::vector<size_t> order) const {
  folder.Write("config.json", config.Dump(1));
  if (order.empty()) {
    order.resize(tensors.size());
    std::iota(order.begin(), order.end(), size_t{0});
  }
  std::vector<std::vector<RawTensor>> files(static_cast<size_t>(shards));
  for (size_t i = 0; i < order.size(); ++i) files[i % files.size()].push_back(tensors[order[i]]);
  if (shards == 1) { folder.Write("model.safetensors", checkpoint::SafetensorsBytes(files[0])); return; }
  base::Json map = base::Json::MakeObject(), index = base::Json::MakeObject();
  for (int f = 0; f < shards; ++f) {
    const std::string name = base::StrCat("model-0000", f + 1, "-of-0000", shards, ".safetensors");
    folder.Write(name, checkpoint::SafetensorsBytes(files[static_cast<size_t>(f)]));
    for (const RawTensor& t : files[static_cast<size_t>(f)]) map.Set(t.name, name);
  }
  index.Set("weight_map", std::move(map));
  folder.Write("model.safetensors.index.json", index.Dump());
}

base::Result<Converted> Convert(const std::filesystem::path& folder, const LoadSettings& settings, int workers) {
  HB_ASSIGN_OR_RETURN(Prepared prepared, Prepare(folder, settings, "cpu"));
  test::RecordingSink sink;
  Converted out;
  HB_ASSIGN_OR_RETURN(out.stats, quant::RunLoad(*prepared.files, prepared.plan, sink, {workers, {}}));
  out.matrices = std::move(sink.matrices);
  out.vectors = std::move(sink.vectors);
  out.plan = std::move(prepared.plan);
  // Entries point into the files, which are closed now.
  for (quant::PlannedMatrix& m : out.plan.matrices) m.source.weight = m.source.scale = m.source.outer = m.source.input_scale = m.source.pre_scale = nullptr;
  for (quant::SourceVector& v : out.plan.vectors) v.entry = nullptr;
  return out;
}

base::Result<Converted> Convert(const TinyModel& model, const LoadSettings& settings, int workers) {
  TemporaryFolder folder;
  model.Write(folder);
  return Convert(folder.path(), settings, workers);
}

}  // namespace halfbyte::model
