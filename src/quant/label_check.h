// What a checkpoint's configuration says of its matrices against what their tensors are. The tensors decide; these are the words about it.
#pragma once

#include "checkpoint/quant_metadata.h"
#include "quant/source.h"

namespace halfbyte::quant {

// One sentence about all experts and dense linear layers of which the label says another family of formats (plain, FP8, NVFP4, MXFP4) than the tensors
// have; nothing where they agree. Routers, embeddings and the head are no matter: producers differ in whether they list them.
base::Result<std::optional<std::string>> LabelDisagreement(const checkpoint::QuantMetadata& metadata, const std::vector<SourceMatrix>& matrices);

// NVFP4 experts that were made for 16-bit activations: the label says weight-only (W4A16_NVFP4, input_activations null) and no expert has an activation
// scale. A static W4A4 mode has nothing to work with then (user case T02b).
bool IsWeightOnly(const checkpoint::QuantMetadata& metadata, const std::vector<SourceMatrix>& matrices);

}  // namespace halfbyte::quant
