// What a new checkpoint takes over from its source's folder beside the tensors: all that tokenizes, formats prompts, preprocesses or sets defaults.
#pragma once

#include "checkpoint/model_folder.h"
#include "checkpoint/safetensors_writer.h"

namespace halfbyte::checkpoint {

// Tokenizers (of any kind), chat templates, generation and processor defaults, code that belongs to the model, licences. Not: weights, indexes,
// config.json and hf_quant_config.json (written anew), model cards (they describe the source), anything unknown.
bool IsCarried(std::string_view name);

// Copies them, following ModelFolder's rules for links. Returns their names.
base::Result<std::vector<std::string>> CarryFiles(const ModelFolder& from, SafetensorsWriter& to);

}  // namespace halfbyte::checkpoint
