// halfbyte eval: measures of a model against files and against itself.
#include "commands.h"
#include "eval_commands.h"

namespace halfbyte::app {

void RegisterEval(CLI::App& program, Context& context) {
  CLI::App* eval = program.add_subcommand("eval", "logits, perplexity, comparison of modes, word problems");
  eval->require_subcommand(1);
  RegisterEvalLogits(*eval, context);
  RegisterEvalPerplexity(*eval, context);
  RegisterEvalCompare(*eval, context);
  RegisterEvalGsm8k(*eval, context);
}

}  // namespace halfbyte::app
