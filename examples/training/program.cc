#include "examples/training/program.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cctype>
#include <cstdio>
#include <exception>
#include <string>

#include "apps/zeus/command_line.h"
#include "apps/zeus/output_file.h"
#include "examples/training/options.h"
#include "examples/training/report.h"
#include "examples/training/run.h"

namespace zeus::examples {
namespace {

constexpr int kSignalExitCode = 128;  // The shells' convention: 130 for SIGINT, 143 for SIGTERM.

std::string Complain(const CLI::App* app, const CLI::Error& error) {
  std::string message = error.what();
  if (!message.empty())
    message.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(message.front())));
  return fmt::format("{0}: {1} (see {0} --help)\n", app->get_name(), message);
}

Result<int> Perform(const Program& program, const Options& options) {
  try {
    if (!options.json.empty()) ZEUS_RETURN_IF_ERROR(cli::CheckWritable(options.json));
    ZEUS_TRY(const ExampleModel* const model, FindExampleModel(program.models, options.model));
    ZEUS_TRY(const Outcome outcome, Train(options, *model));
    PrintOutcome(outcome, options);
    if (!options.json.empty())
      ZEUS_RETURN_IF_ERROR(cli::WriteWhole(options.json, ToJson(outcome, options).dump(2) + "\n"));
    ZEUS_RETURN_IF_ERROR(cli::FlushOutput());
    return outcome.signal == 0 ? 0 : kSignalExitCode + outcome.signal;
  } catch (const std::exception& error) {
    return Error{ErrorCode::kInternal, error.what()};
  }
}

}  // namespace

int RunProgram(const Program& program, int argc, char** argv) {
  CLI::App app("Trains a small network on simulated GPUs and lowers what it costs.", program.name);
  app.failure_message(Complain);
  Options options;
  AddOptions(app, program.models, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : cli::ExitCode(ErrorCode::kInvalidArgument);
  }
  const Result<int> outcome = Perform(program, options);
  if (outcome.ok()) return outcome.value();
  fmt::print(stderr, "{}: {}\n", program.name, outcome.error().message);
  return cli::ExitCode(outcome.error().code);
}

}  // namespace zeus::examples
