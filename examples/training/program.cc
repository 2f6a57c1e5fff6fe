#include "examples/training/program.h"

#include "apps/zeus/command_line.h"
#include "apps/zeus/output_file.h"
#include "examples/training/options.h"
#include "examples/training/report.h"
#include "examples/training/run.h"
#include "zeus/base/json.h"

namespace zeus::examples {
namespace {

constexpr int kSignalExitCode = 128;  // The shells' convention: 130 for SIGINT, 143 for SIGTERM.

Result<int> Perform(const Program& program, const Options& options) {
  for (const std::string& file : {options.json, options.report})
    if (!file.empty()) ZEUS_RETURN_IF_ERROR(cli::CheckWritable(file));
  ZEUS_TRY(const ExampleModel* const model, FindExampleModel(program.models, options.model));
  ZEUS_TRY(const Outcome outcome, Train(options, *model));
  PrintOutcome(outcome, options);
  if (!options.json.empty())
    ZEUS_RETURN_IF_ERROR(
        cli::WriteWhole(options.json, JsonText(ToJson(outcome, options), 2) + "\n"));
  return outcome.signal == 0 ? 0 : kSignalExitCode + outcome.signal;
}

}  // namespace

int RunProgram(const Program& program, int argc, char** argv) {
  cli::CommandLine line(program.name,
                        "Trains a small network on simulated GPUs and lowers what it costs.");
  Options options;
  AddOptions(line.program(), program.models, options);
  return line.Run(argc, argv, [&] { return Perform(program, options); });
}

}  // namespace zeus::examples
