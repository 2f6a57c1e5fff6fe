// The zeus command: one executable, one verb per capability. This file only composes them.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "apps/zeus/calibrate/calibrate_command.h"
#include "apps/zeus/command.h"
#include "apps/zeus/diff/diff_command.h"
#include "apps/zeus/doctor_command.h"
#include "apps/zeus/exit_code.h"
#include "apps/zeus/job/job_command.h"
#include "apps/zeus/knobs_command.h"
#include "apps/zeus/monitor/monitor_command.h"
#include "apps/zeus/output.h"
#include "apps/zeus/plan/plan_command.h"
#include "apps/zeus/profile/profile_command.h"
#include "apps/zeus/replay/replay_command.h"
#include "apps/zeus/run/run_command.h"
#include "apps/zeus/serve/serve_command.h"
#include "apps/zeus/sim_command.h"
#include "apps/zeus/train/train_command.h"
#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

// One sentence for every mistake on the command line.
std::string Complain(const CLI::App* app, const CLI::Error& error) {
  std::string message = error.what();
  if (const auto unknown = app->remaining(true); !unknown.empty()) {
    message = fmt::format("{} is not known here", Quote(unknown.front()));
  } else if (!message.empty()) {
    message.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(message.front())));
  }
  const CLI::App* deepest = app;
  while (!deepest->get_subcommands().empty()) deepest = deepest->get_subcommands().front();
  std::string verb = deepest->get_name();
  for (const CLI::App* parent = deepest->get_parent(); parent != nullptr;
       parent = parent->get_parent())
    verb = parent->get_name() + " " + verb;
  return fmt::format("zeus: {} (see {} --help)\n", message, verb);
}

int ExitCodeOf(const CLI::App& app, ErrorCode code) {
  return app.got_subcommand("diff") ? DiffExitCode(code) : ExitCode(code);
}

// Nothing may throw out of a verb; what does all the same (no memory, a full disk under fmt) ends
// the program in an orderly way.
Result<int> Perform(const Action& action) {
  try {
    ZEUS_TRY(const int code, action());
    ZEUS_RETURN_IF_ERROR(FlushOutput());
    return code;
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kInternal, "there is not enough memory for what was asked"};
  } catch (const std::exception& error) {
    ZEUS_RETURN_IF_ERROR(FlushOutput());
    return Error{ErrorCode::kInternal, error.what()};
  }
}

// Takes the command that `zeus run`, `zeus profile` or `zeus train` is to run off the command line,
// so that nothing reads its words as options of Zeus.
CommandTail TakeCommand(int& argc, char** argv) {
  CommandTail tail;
  if (argc < 2) return tail;
  const std::string_view verb(argv[1]);
  if (verb != "run" && verb != "profile" && verb != "train") return tail;
  char** const dashes =
      std::find_if(argv, argv + argc, [](std::string_view word) { return word == "--"; });
  if (dashes == argv + argc) return tail;
  tail.present = true;
  tail.words.assign(dashes + 1, argv + argc);
  argc = static_cast<int>(dashes - argv);
  return tail;
}

int Main(int argc, char** argv) {
  const CommandTail tail = TakeCommand(argc, argv);
  CLI::App app("Measures and lowers the energy of deep-learning work.", "zeus");
  app.require_subcommand(1);
  app.failure_message(Complain);
  app.set_version_flag("--version", "zeus " ZEUS_VERSION);
  Action action;
  AddCalibrateCommand(app, action);
  AddDiffCommand(app, action);
  AddDoctorCommand(app, action);
  AddJobCommand(app, action);
  AddKnobsCommand(app, action);
  AddMonitorCommand(app, action);
  AddPlanCommand(app, action);
  AddProfileCommand(app, action, tail);
  AddReplayCommand(app, action);
  AddRunCommand(app, action, tail);
  AddServeCommand(app, action);
  AddSimCommand(app, action);
  AddTrainCommand(app, action, tail);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 prints help and errors itself; every mistake on the command line has one exit code.
    return app.exit(error) == 0 ? 0 : ExitCodeOf(app, ErrorCode::kInvalidArgument);
  }
  const Result<int> outcome = Perform(action);
  if (outcome.ok()) return outcome.value();
  std::fputs(("zeus: " + outcome.error().message + "\n").c_str(), stderr);
  return ExitCodeOf(app, outcome.error().code);
}

}  // namespace
}  // namespace zeus::cli

int main(int argc, char** argv) { return zeus::cli::Main(argc, argv); }
