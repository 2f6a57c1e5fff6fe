#include <memory>

#include "apps/zeus/commands.h"
#include "apps/zeus/profile/profile_options.h"
#include "apps/zeus/profile/profile_session.h"
#include "apps/zeus/profile/profiled_devices.h"
#include "apps/zeus/profile/sweep_outputs.h"
#include "apps/zeus/run/run_options.h"
#include "zeus/base/clock.h"
#include "zeus/monitor/sharing/shared_activity_board.h"

namespace zeus::cli {
namespace {

Result<int> Execute(const ProfileFlags& flags, const Verb& verb, const CommandTail& tail) {
  ZEUS_TRY(std::vector<std::string> command, CommandToRun(verb, tail));
  ZEUS_TRY(const ProfileOptions options, Interpret(flags, std::move(command)));
  ZEUS_RETURN_IF_ERROR(CheckFiles(options.files));
  ActivityGroup::BecomeHost();
  SystemClock clock;
  ZEUS_TRY(const std::unique_ptr<SignalWatch> signals, SignalWatch::Start());
  ZEUS_TRY(const std::unique_ptr<ProfiledDevices> devices,
           ProfiledDevices::Open(clock, {.kind = options.knob,
                                         .gpus = options.gpus,
                                         .ceiling = options.ceiling,
                                         .driver_timeout = options.driver_timeout}));
  return ProfileSession(options, clock, *signals, *devices).Execute();
}

}  // namespace

void AddProfileCommand(Verb app, Action& action, const CommandTail& tail) {
  auto flags = std::make_shared<ProfileFlags>();
  const Verb verb = app.AddVerb(
      "profile",
      "Try power limits while a command runs: zeus profile [OPTIONS] -- COMMAND [ARGUMENTS]");
  // What is no option of ours begins the command.
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
