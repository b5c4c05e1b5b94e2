// The subcommands of `halfbyte eval`; like those of the program (commands.h), one function each.
#pragma once

#include "commands.h"

namespace halfbyte::app {

void RegisterEvalLogits(CLI::App& eval, Context& context);
void RegisterEvalPerplexity(CLI::App& eval, Context& context);
void RegisterEvalCompare(CLI::App& eval, Context& context);
void RegisterEvalGsm8k(CLI::App& eval, Context& context);

}  // namespace halfbyte::app
