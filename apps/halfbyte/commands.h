// One function a subcommand: it adds the subcommand and its flags to the program and sets a callback.
//
// A callback checks what can be checked from the command line alone (wrong usage is thrown and exits with 2, options.h) and leaves `command`, which
// writes its result to `out` and returns a Status; main turns an error into one line on stderr and exit code 1.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "base/json.h"
#include "output.h"

namespace halfbyte::app {

struct Context {
  Output out;                               // stdout
  bool json = false;                        // --json: a machine-readable result on stdout
  bool quiet = false;                       // -q: no report, no progress
  std::function<base::Status()> command;    // set by the subcommand that was chosen
};

#define HB_COMMAND(name) void Register##name(CLI::App& program, Context& context);
#include "commands.def"
#undef HB_COMMAND

}  // namespace halfbyte::app
