// Rotary frequencies from config.json: plain, linear, llama3 and YaRN scaling (model-families 1.2), old field names and new ones (trap 2).
#pragma once

#include "model/config_reader.h"
#include "model/spec.h"

namespace halfbyte::model {

// head_dim: HD; partial_default: the rotated share of a head where config.json does not say (1.0 for most families).
base::Result<Rope> ReadRope(const ConfigReader& config, int64_t head_dim, double partial_default = 1.0);

}  // namespace halfbyte::model
