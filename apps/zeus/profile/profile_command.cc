#include <fmt/format.h>

#include <memory>

#include "apps/zeus/commands.h"
#include "apps/zeus/exit_code.h"
#include "apps/zeus/output.h"
#include "apps/zeus/profile/profile_options.h"
#include "apps/zeus/profile/profile_output.h"
#include "apps/zeus/run/run_options.h"
#include "zeus/base/clock.h"
#include "zeus/monitor/sharing/shared_activity_board.h"
#include "zeus/session/profile_session.h"
#include "zeus/session/profiled_devices.h"

namespace zeus::cli {
namespace {

int ProfileExitCode(const ProfileOutcome& outcome) {
  // The end of the command was asked for, so its own exit code says nothing.
  if (outcome.stopped) return outcome.failure ? ExitCode(outcome.failure->code) : 0;
  if (outcome.command.exit_code != 0) return outcome.command.exit_code;
  if (outcome.failure) return ExitCode(outcome.failure->code);
  return outcome.measured ? 0 : ExitCode(ErrorCode::kUnavailable);
}

Result<int> Execute(const ProfileFlags& flags, const Verb& verb, const CommandTail& tail) {
  ZEUS_TRY(std::vector<std::string> command, CommandToRun(verb, tail));
  ZEUS_TRY(const ProfileInvocation invocation, Interpret(flags, std::move(command)));
  ZEUS_RETURN_IF_ERROR(CheckFiles(invocation.files));
  ActivityGroup::BecomeHost();
  SystemClock clock;
  ZEUS_TRY(const std::unique_ptr<SignalWatch> signals, SignalWatch::Start());
  ZEUS_TRY(const std::unique_ptr<ProfiledDevices> devices,
           ProfiledDevices::Open(clock, {.kind = invocation.knob,
                                         .gpus = invocation.gpus,
                                         .ceiling = invocation.ceiling,
                                         .driver_timeout = invocation.driver_timeout}));
  const auto show = [&invocation](const ProfileReport& report) {
    Status written = WriteResults(report, invocation.files);
    if (!invocation.quiet) ShowResults(report);
    return written;
  };
  ProfileSession session(invocation.session, clock, *signals, *devices, show);
  ZEUS_TRY(ProfileOutcome outcome, session.Execute());
  if (outcome.not_started) return CommandNotStarted(*std::move(outcome.not_started));
  if (outcome.failure) PrintErrorText(fmt::format("zeus: {}\n", outcome.failure->message));
  return ProfileExitCode(outcome);
}

}  // namespace

void AddProfileCommand(Verb app, Action& action, const CommandTail& tail) {
  auto flags = std::make_shared<ProfileFlags>();
  const Verb verb = app.AddVerb(
      "profile",
      "Try power limits while a command runs: zeus profile [OPTIONS] -- COMMAND [ARGUMENTS]");
  // The command begins with the first word that is not an option of ours.
  verb.StopAtUnknown();
  AddProfileFlags(verb, *flags);
  verb.Footer(
      "The limit is put back after the sweep, and whatever ends it. The exit code is that of the\n"
      "command, as with zeus run; 0 when --stop ended it; 6 when it succeeded and nothing could\n"
      "be measured. When limits cannot be set the command is not started.");
  verb.OnChosen([&action, &tail, flags, verb] {
    action = [&tail, flags, verb] { return Execute(*flags, verb, tail); };
  });
}

}  // namespace zeus::cli
