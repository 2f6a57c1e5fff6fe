#include <memory>

#include "apps/zeus/commands.h"
#include "apps/zeus/output_file.h"
#include "apps/zeus/run/rank_run.h"
#include "apps/zeus/run/run_options.h"
#include "apps/zeus/run/session.h"
#include "zeus/base/clock.h"
#include "zeus/monitor/sharing/shared_activity_board.h"

namespace zeus::cli {
namespace {

// An unwritable file is found out before the command has cost an hour.
Status CheckFiles(const RunOptions& options) {
  if (!options.json.empty() && options.json != "-")
    ZEUS_RETURN_IF_ERROR(CheckWritable(options.json));
  if (!options.csv.empty()) ZEUS_RETURN_IF_ERROR(Append(options.csv, "", ""));
  return Ok();
}

Result<int> Execute(const RunFlags& flags, const Verb& verb, const CommandTail& tail) {
  ZEUS_TRY(std::vector<std::string> command, CommandToRun(verb, tail));
  ZEUS_TRY(const RunOptions options, Interpret(flags, std::move(command)));
  ZEUS_RETURN_IF_ERROR(CheckFiles(options));
  if (options.place)
    ActivityGroup::BecomeHostOf(LaunchNumber(*options.place));
  else
    ActivityGroup::BecomeHost();
  if (options.place) {
    auto code = RunAsRank(options);
    if (!code.ok()) return CommandNotStarted(std::move(code).error());
    return code;
  }
  const auto clock = std::make_shared<SystemClock>();
  ZEUS_TRY(const CarbonAccounting carbon, CarbonAccounting::Open(*clock, options.carbon));
  ZEUS_TRY(const std::unique_ptr<SignalWatch> signals, SignalWatch::Start());
  ZEUS_TRY(const std::unique_ptr<RunMeter> meter, RunMeter::Open(clock, *signals, options.meter));
  auto code = RunSession(options, *clock, *signals, *meter, carbon).Execute();
  if (!code.ok()) return CommandNotStarted(std::move(code).error());
  return code;
}

}  // namespace

void AddRunCommand(Verb app, Action& action, const CommandTail& tail) {
  auto flags = std::make_shared<RunFlags>();
  const Verb verb = app.AddVerb(
      "run", "Run a command and say what it cost: zeus run [OPTIONS] -- COMMAND [ARGUMENTS]");
  // The command begins with the first word that is not an option of ours.
  verb.StopAtUnknown();
  AddRunFlags(verb, *flags);
  verb.Footer(
      "The exit code is that of the command: 128 + n when signal n killed it, 127 when there is "
      "no\n"
      "such command, 126 when it cannot be executed. Signals are passed on to the command.");
  verb.OnChosen([&action, &tail, flags, verb] {
    action = [&tail, flags, verb] { return Execute(*flags, verb, tail); };
  });
}

}  // namespace zeus::cli
