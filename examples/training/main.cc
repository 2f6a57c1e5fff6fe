// Trains a small network for real on this CPU, with the time and power of its steps coming from
// simulated GPUs, and optimises their power limit meanwhile.
#include <CLI/CLI.hpp>

#include <cctype>
#include <cstdio>
#include <exception>
#include <string>

#include "apps/zeus/exit_code.h"
#include "apps/zeus/output.h"
#include "apps/zeus/output_file.h"
#include "examples/training/options.h"
#include "examples/training/report.h"
#include "examples/training/run.h"

namespace zeus::examples {
namespace {

constexpr int kSignalExitCode = 128;  // The shells' convention: 130 for SIGINT, 143 for SIGTERM.

std::string Complain(const CLI::App* /*app*/, const CLI::Error& error) {
  std::string message = error.what();
  if (!message.empty())
    message.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(message.front())));
  return "train: " + message + " (see train --help)\n";
}

Result<int> Perform(const Options& options) {
  try {
    if (!options.json.empty()) ZEUS_RETURN_IF_ERROR(cli::CheckWritable(options.json));
    ZEUS_TRY(const Outcome outcome, Train(options));
    PrintOutcome(outcome, options);
    if (!options.json.empty())
      ZEUS_RETURN_IF_ERROR(cli::WriteWhole(options.json, ToJson(outcome, options).dump(2) + "\n"));
    ZEUS_RETURN_IF_ERROR(cli::FlushOutput());
    return outcome.signal == 0 ? 0 : kSignalExitCode + outcome.signal;
  } catch (const std::exception& error) {
    return Error{ErrorCode::kInternal, error.what()};
  }
}

int Main(int argc, char** argv) {
  CLI::App app("Trains a small network on simulated GPUs and lowers what it costs.", "train");
  app.failure_message(Complain);
  Options options;
  AddOptions(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : cli::ExitCode(ErrorCode::kInvalidArgument);
  }
  const Result<int> outcome = Perform(options);
  if (outcome.ok()) return outcome.value();
  std::fputs(("train: " + outcome.error().message + "\n").c_str(), stderr);
  return cli::ExitCode(outcome.error().code);
}

}  // namespace
}  // namespace zeus::examples

int main(int argc, char** argv) { return zeus::examples::Main(argc, argv); }
