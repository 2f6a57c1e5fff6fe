#include "apps/zeus/replay/replay_command.h"

#include "apps/zeus/replay/job_command.h"

namespace zeus::cli {

void AddReplayCommand(CLI::App& app, Action& action) {
  CLI::App* const replay = app.add_subcommand(
      "replay", "Replay recorded or simulated jobs under batch size policies, and compare them");
  replay->require_subcommand(1);
  AddReplayJobCommand(*replay, action);
}

}  // namespace zeus::cli
