// The modules that a conversion leaves alone, described from their tensors: what the new configuration must say about them.
#pragma once

#include "checkpoint/quant_config_writer.h"
#include "quant/source.h"

namespace halfbyte::quant {

// Adds to `config` the modules with a weight matrix among `copied` (weights of rank 2 and above): plain ones to kept, FP8 and the like to kept and
// kept_quantized, NVFP4 ones (MTP layers of an NVFP4 source) to quantized; and an FP8 KV cache where k_scale or v_scale tensors are among them.
// A matrix of a format that configurations have no word for is a warning.
void AddKeptModules(const checkpoint::Checkpoint& files, const std::vector<const TensorEntry*>& copied, const SourceOptions& options, checkpoint::WrittenQuant& config,
                    std::vector<std::string>& warnings);

}  // namespace halfbyte::quant
