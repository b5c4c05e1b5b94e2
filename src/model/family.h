// From config.json to a ModelSpec: finds the family and lets it read.
#pragma once

#include "model/config_reader.h"
#include "model/spec.h"
#include "quant/source.h"

namespace halfbyte::model {

// By model_type, else by architectures[0]. An unknown family is an error that lists the known ones.
base::Result<ModelSpec> ReadSpec(const ConfigReader& config);

// Every matrix and vector that a model of this spec needs.
std::vector<quant::ExpectedTensor> ExpectedTensors(const ModelSpec& spec);

}  // namespace halfbyte::model
