// halfbyte eval logits --tokens F.json --out F.safetensors
#pragma once

#include "commands.h"

namespace halfbyte::app {
void RegisterEvalLogits(CLI::App& eval, Context& context);
}
