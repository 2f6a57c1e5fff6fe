// The zeus command: one executable, one verb per capability. This file only composes them.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>

#include "apps/zeus/command.h"
#include "apps/zeus/doctor_command.h"
#include "apps/zeus/exit_code.h"
#include "apps/zeus/monitor_command.h"
#include "apps/zeus/sim_command.h"

namespace zeus::cli {
namespace {

int Main(int argc, char** argv) {
  CLI::App app("Measures and lowers the energy of deep-learning work.", "zeus");
  app.require_subcommand(1);
  Action action;
  AddDoctorCommand(app, action);
  AddMonitorCommand(app, action);
  AddSimCommand(app, action);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 prints help and errors itself; every mistake on the command line is exit code 2.
    return app.exit(error) == 0 ? 0 : ExitCode(ErrorCode::kInvalidArgument);
  }
  const Result<int> outcome = action();
  if (outcome.ok()) return outcome.value();
  fmt::print(stderr, "zeus: {}\n", outcome.error().message);
  return ExitCode(outcome.error().code);
}

}  // namespace
}  // namespace zeus::cli

int main(int argc, char** argv) { return zeus::cli::Main(argc, argv); }
