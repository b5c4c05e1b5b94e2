// The tokenizer of a model, without the model: only tokenizer.json is read.
#pragma once

#include <string>

#include "text/tokenizer.h"

namespace halfbyte::app {

// `model` as for --model.
base::Result<text::Tokenizer> LoadTokenizer(const std::string& model);

}  // namespace halfbyte::app
