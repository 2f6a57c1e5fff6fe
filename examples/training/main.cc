// Trains a small network for real on this CPU, with the time and power of its steps coming from
// simulated GPUs, and optimises their power limit meanwhile.
#include <string>

#include "apps/zeus/command_line.h"
#include "apps/zeus/output_file.h"
#include "examples/training/options.h"
#include "examples/training/report.h"
#include "examples/training/run.h"

namespace zeus::examples {
namespace {

constexpr int kSignalExitCode = 128;  // The shells' convention: 130 for SIGINT, 143 for SIGTERM.

Result<int> Perform(const Options& options) {
  if (!options.json.empty()) ZEUS_RETURN_IF_ERROR(cli::CheckWritable(options.json));
  ZEUS_TRY(const Outcome outcome, Train(options));
  PrintOutcome(outcome, options);
  if (!options.json.empty())
    ZEUS_RETURN_IF_ERROR(cli::WriteWhole(options.json, ToJson(outcome, options).dump(2) + "\n"));
  return outcome.signal == 0 ? 0 : kSignalExitCode + outcome.signal;
}

int Main(int argc, char** argv) {
  cli::CommandLine line("train",
                        "Trains a small network on simulated GPUs and lowers what it costs.");
  Options options;
  AddOptions(line.program(), options);
  return line.Run(argc, argv, [&options] { return Perform(options); });
}

}  // namespace
}  // namespace zeus::examples

int main(int argc, char** argv) { return zeus::examples::Main(argc, argv); }
