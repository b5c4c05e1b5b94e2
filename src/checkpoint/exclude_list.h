// The list of modules that an exported checkpoint says it left alone, written from the tensors that were left alone.
//
// Three engines read the same strings with three matchers (numerics-and-formats 4.3), so a list is right only where all three agree:
//   vLLM           equal, or a plain substring; "x*" also means the substring "x"; then fnmatch
//   SGLang         `*` any run of characters; the whole path or any single component must match fully
//   TensorRT-LLM   fnmatch on the path and each of its ancestors; a final ".*" also matches the parent
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace halfbyte::checkpoint {

enum class ExcludeReader { kVllm, kSglang, kTensorRtLlm };
// Does this reader leave `module` unquantized?
bool Excludes(ExcludeReader reader, const std::vector<std::string>& patterns, std::string_view module);

// Patterns for `kept`, none of which touches `quantized`: "lm_head", "model.layers.0.mlp.gate", "model.layers.0.self_attn*", "mtp*". A `*` stands only
// after a whole component that is no number (a pattern "model.layers.1*" would hit layers 10 to 19). Sorted.
std::vector<std::string> MakeExcludeList(const std::vector<std::string>& kept, const std::vector<std::string>& quantized);

// Sentences about modules that a reader would take wrongly: a kept path that is part of a quantized one, as "mlp.gate" of "mlp.gate_up_proj". Empty
// for every list that MakeExcludeList can write safely.
std::vector<std::string> ExcludeListProblems(const std::vector<std::string>& patterns, const std::vector<std::string>& kept, const std::vector<std::string>& quantized);

}  // namespace halfbyte::checkpoint
