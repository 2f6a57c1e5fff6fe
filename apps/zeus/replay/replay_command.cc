#include "apps/zeus/replay/replay_command.h"

#include "apps/zeus/replay/cluster_command.h"
#include "apps/zeus/replay/history_command.h"
#include "apps/zeus/replay/job_command.h"
#include "apps/zeus/replay/paper_command.h"
#include "apps/zeus/replay/sweep_command.h"

namespace zeus::cli {

void AddReplayCommand(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "replay", "Compare policies on recorded or simulated jobs, without running anything");
  verb->require_subcommand(1);
  AddReplayClusterCommand(*verb, action);
  AddReplayJobCommand(*verb, action);
  AddReplayPaperCommand(*verb, action);
  AddReplayHistoryCommand(*verb, action);
  AddReplaySweepCommand(*verb, action);
}

}  // namespace zeus::cli
