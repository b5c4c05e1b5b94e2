// halfbyte: parses the command line, runs one subcommand, turns its Status into an exit code (0 fine, 1 failed, 2 wrong usage).
#include <cstdio>
#include <new>
#include <sstream>

#include "base/log.h"
#include "commands.h"

namespace halfbyte::app {
namespace {

int ExitCode(const base::Status& status) {
  if (status) return 0;
  std::fprintf(stderr, "halfbyte: %s\n", status.error().ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace halfbyte::app

int main(int argc, char** argv) {
  using namespace halfbyte;
  using app::ExitCode;
  app::ReserveStandardDescriptors();
  CLI::App program("MoE language models with 4-bit experts, from an unmodified Hugging Face folder", "halfbyte");
  program.require_subcommand(1);
  program.set_version_flag("--version", "halfbyte " HALFBYTE_VERSION);
  program.fallthrough();  // the common flags may stand after the subcommand

  app::Context context;
  std::string log_level = "info";
  program.add_flag("--json", context.json, "machine-readable result on stdout");
  program.add_flag("-q,--quiet", context.quiet, "no report and no progress, only warnings and errors");
  program.add_option("--log-level", log_level, "debug, info, warning, error or off")
      ->check(CLI::IsMember({"debug", "info", "warning", "error", "off"}))->capture_default_str();
#define HB_COMMAND(name) app::Register##name(program, context);
#include "commands.def"
#undef HB_COMMAND

  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const auto named = program.get_subcommands([&](const CLI::App* c) { return argc > 1 && c->get_name() == argv[1]; });
    if (argc > 1 && argv[1][0] != '-' && named.empty()) std::fprintf(stderr, "halfbyte has no command \"%s\". ", argv[1]);
    std::ostringstream help;
    if (program.exit(e, help) != 0) return 2;
    context.out.Text(help.str());
    return ExitCode(context.out.Finish());
  }
  base::SetLogLevel(context.quiet ? base::LogLevel::kWarning : *base::ParseLogLevel(log_level));
  if (!context.command) return 2;
  base::Status status;
  try {
    status = context.command();
  } catch (const std::bad_alloc&) {  // of a container; large buffers say so themselves
    status = base::Fail(base::ErrorCode::kOutOfMemory, "out of memory");
  }
  const base::Status written = context.out.Finish();  // what was written before an error is still shown
  return ExitCode(status ? written : status);
}
