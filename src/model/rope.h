// Rotary frequencies from config.json: plain, linear, llama3 and YaRN scaling (model-families 1.2), old field names and new ones (trap 2).
#pragma once

#include "model/config_reader.h"
#include "model/spec.h"

namespace halfbyte::model {

// head_dim: HD; theta_default: the family's base where config.json does not say (early Llama 2 files have none).
base::Result<Rope> ReadRope(const ConfigReader& config, int64_t head_dim, double theta_default = 10000.0);

}  // namespace halfbyte::model
