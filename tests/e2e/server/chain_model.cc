#include "chain_model.h"

#include <set>

#include "base/json.h"

namespace halfbyte::server {
namespace {

void AppendUtf8(std::string& out, int code) {
  if (code < 0x80) out += static_cast<char>(code);
  else out += {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
}

// Byte-level BPE's picture of a byte: printable ones stand for themselves, the others from U+0100 on.
std::string Symbol(int byte) {
  auto printable = [](int b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174 && b <= 255); };
  int code = byte;
  if (!printable(byte)) {
    code = 256;
    for (int b = 0; b < byte; ++b) code += !printable(b);
  }
  std::string out;
  AppendUtf8(out, code);
  return out;
}

std::string Symbols(std::string_view bytes) {
  std::string out;
  for (char c : bytes) out += Symbol(static_cast<unsigned char>(c));
  return out;
}

std::string TokenizerJson() {
  base::Json vocab = base::Json::MakeObject();
  for (int b = 0; b < 256; ++b) vocab.Set(Symbol(b), b);
  const std::pair<int, const char*> tokens[] = {{300, "\xF0\x9F"}, {301, "\x98\x80"}, {302, "DEF"}, {303, "G"}, {304, "HI"}, {305, "J"}, {306, "K"}, {310, "ABC"}, {320, "ABCD"}, {321, "EFG"}, {322, "HIK"}, {323, "L"},
                                                {330, "<tool_call>"}, {331, "</tool_call>"}, {332, "{\"name\": \"add\", "}, {333, "\"arguments\": {\"a\": 1}}"}, {340, "<think>"}, {341, "why not"}, {342, "</think>"}, {343, "because"}};
  for (const auto& [id, text] : tokens) vocab.Set(Symbols(text), id);
  base::Json tokenizer = *base::Json::Parse(R"({"version": "1.0", "truncation": null, "padding": null, "normalizer": null,
    "added_tokens": [{"id": 511, "content": "<end>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}, "post_processor": null,
    "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}})");
  base::Json model = base::Json::MakeObject();
  model.Set("type", "BPE");
  model.Set("vocab", std::move(vocab));
  model.Set("merges", base::Json::MakeArray());
  tokenizer.Set("model", std::move(model));
  return tokenizer.Dump();
}

std::string Bf16(int64_t rows, int64_t cols, const std::set<std::pair<int64_t, int64_t>>& ones) {
  std::string out(static_cast<size_t>(rows * cols * 2), '\0');
  for (const auto& [r, c] : ones) {
    out[static_cast<size_t>((r * cols + c) * 2)] = static_cast<char>(0x80);
    out[static_cast<size_t>((r * cols + c) * 2 + 1)] = 0x3F;
  }
  return out;
}

}  // namespace

Successors TextChains() {
  Successors next;
  auto chain = [&](std::initializer_list<int> tokens) {
    for (auto a = tokens.begin(), b = a + 1; b != tokens.end(); ++a, ++b) next[*a] = *b;
  };
  chain({'a', 'A', 300, 301, 'B', kChainEnd});        // A, a smiling face in two tokens, B
  chain({'b', 310, 302, 303, 304, 305, 306, kChainEnd});  // ABC DEF G HI J K
  chain({'c', 320, 321, 322, 323, kChainEnd});        // ABCD EFG HIK L
  chain({'f', 255, kChainEnd});                       // the byte FF
  chain({'t', 330, 332, 333, 331, kChainEnd});        // a tool call
  chain({'r', 340, 341, 342, 343, kChainEnd});        // thinking, then an answer
  next['l'] = 'l';
  return next;
}

void WriteChainModel(const checkpoint::TemporaryFolder& folder, const Successors& successors, const std::string& subfolder, int certain) {
  const int64_t v = kChainVocab, d = 512, f = 32, hd = 64;
  std::vector<checkpoint::RawTensor> tensors;
  auto add = [&](const std::string& name, int64_t rows, int64_t cols, const std::set<std::pair<int64_t, int64_t>>& ones = {}) {
    tensors.push_back({name, "BF16", base::StrCat("[", rows, ",", cols, "]"), Bf16(rows, cols, ones)});
  };
  auto norm = [&](const std::string& name, int64_t n) {
    std::string ones;
    for (int64_t i = 0; i < n; ++i) ones += std::string("\x80\x3F", 2);
    tensors.push_back({name, "BF16", base::StrCat("[", n, "]"), ones});
  };
  std::set<std::pair<int64_t, int64_t>> identity, head;
  for (int64_t i = 0; i < v; ++i) identity.insert({i, i});
  for (const auto& [from, to] : successors) head.insert({to, from});
  add("model.embed_tokens.weight", v, d, identity);
  add("lm_head.weight", v, d, head);
  for (int64_t row = 0; certain >= 0 && row < v; ++row)
    if (row != successors.at(certain)) tensors.back().data.replace(static_cast<size_t>((row * d + certain) * 2), 2, "\x7F\xFF");
  norm("model.norm.weight", d);
  const std::string layer = "model.layers.0.";
  norm(layer + "input_layernorm.weight", d);
  norm(layer + "post_attention_layernorm.weight", d);
  norm(layer + "self_attn.q_norm.weight", hd);
  norm(layer + "self_attn.k_norm.weight", hd);
  add(layer + "self_attn.q_proj.weight", hd, d);
  add(layer + "self_attn.k_proj.weight", hd, d);
  add(layer + "self_attn.v_proj.weight", hd, d);
  add(layer + "self_attn.o_proj.weight", d, hd);
  add(layer + "mlp.gate.weight", 4, d);
  for (int e = 0; e < 4; ++e) {
    const std::string expert = base::StrCat(layer, "mlp.experts.", e, ".");
    add(expert + "gate_proj.weight", f, d);
    add(expert + "up_proj.weight", f, d);
    add(expert + "down_proj.weight", d, f);
  }
  const std::filesystem::path at = subfolder;
  folder.Write(at / "model.safetensors", checkpoint::SafetensorsBytes(tensors));
  folder.Write(at / "tokenizer.json", TokenizerJson());
  folder.Write(at / "config.json", R"({"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_act": "silu", "hidden_size": 512, "num_attention_heads": 1, "num_key_value_heads": 1,
    "head_dim": 64, "num_hidden_layers": 1, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "intermediate_size": 64, "norm_topk_prob": true, "vocab_size": 512,
    "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "max_position_embeddings": 4096, "tie_word_embeddings": false, "eos_token_id": 511})");
  folder.Write(at / "generation_config.json", R"({"do_sample": false, "eos_token_id": 511})");
  // Only the user's last message is shown to the model, so that its last byte starts a chain.
  folder.Write(at / "chat_template.jinja", "{%- if messages[0].content == 'refuse' %}{{ raise_exception('no such talk') }}{% endif %}{{ messages[-1].content }}");
}

}  // namespace halfbyte::server
