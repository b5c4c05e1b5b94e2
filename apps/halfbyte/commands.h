// One function a subcommand: it adds the subcommand and its flags to the program and sets a callback.
//
// A callback prints the command's result to stdout and returns a Status; main turns an error into one line on stderr and
// exit code 1. Wrong usage is CLI11's business and exits with 2.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "base/json.h"

namespace halfbyte::app {

struct Context {
  bool json = false;                        // --json: a machine-readable result on stdout
  bool quiet = false;                       // -q: no report, no progress
  std::function<base::Status()> command;    // set by the subcommand that was chosen
};

#define HB_COMMAND(name) void Register##name(CLI::App& program, Context& context);
#include "commands.def"
#undef HB_COMMAND

}  // namespace halfbyte::app
