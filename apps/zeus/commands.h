#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/zeus/command_line.h"
#include "zeus/base/result.h"

namespace zeus::cli {

// The action of a verb, called once the command line is parsed. The value is the exit code; an
// error is printed as one sentence on standard error, and its code determines the exit code
// (exit_code.h).
using Action = std::function<Result<int>()>;

// Everything after the first "--" on the command line of a verb that runs a command. Zeus does not
// interpret these words.
struct CommandTail {
  bool present = false;
  std::vector<std::string> words{};
};

// The verbs of `zeus`. Each function declares the options of its verb below `app` and, when the
// verb is chosen, sets `action`.

// Verbs that run a command: `tail` holds its words and must outlive the app.
void AddProfileCommand(Verb app, Action& action, const CommandTail& tail);
void AddRecordCommand(Verb app, Action& action, const CommandTail& tail);
void AddRunCommand(Verb app, Action& action, const CommandTail& tail);
void AddTrainCommand(Verb app, Action& action, const CommandTail& tail);

void AddCalibrateCommand(Verb app, Action& action);  // How the sensors of GPUs behave.
void AddDiffCommand(Verb app, Action& action);       // Comparison of two runs.
void AddDoctorCommand(Verb app, Action& action);     // Sensors and knobs of this machine.
void AddJobCommand(Verb app, Action& action);        // Recurring jobs in a database.
void AddKnobsCommand(Verb app, Action& action);      // Limits and clocks that were changed.
void AddLeaseCommand(Verb app, Action& action);      // Knobs that the node daemon lends.
void AddLlmCommand(Verb app, Action& action);        // Energy of language models.
void AddMonitorCommand(Verb app, Action& action);    // The power of this machine, live.
void AddNodeCommand(Verb app, Action& action);       // The devices behind the node daemon.
void AddPlanCommand(Verb app, Action& action);       // Clocks for the computations of a pipeline.
void AddPlanStartCommand(Verb app, Action& action);  // The cleanest or cheapest start of a run.
void AddRecordingCommand(Verb app, Action& action);  // Recordings of a GPU driver.
void AddServeCommand(Verb app, Action& action);      // The job server.
void AddSimCommand(Verb app, Action& action);        // Simulated nodes.
void AddSlurmCommand(Verb app, Action& action);      // Hooks and reports for Slurm.
void AddTopCommand(Verb app, Action& action);        // Power and leases, live, through the daemon.

// Policies compared on recorded jobs, and the verbs below `zeus replay`.
void AddReplayCommand(Verb app, Action& action);
void AddReplayClusterCommand(Verb replay, Action& action);  // Jobs of a whole cluster.
void AddReplayHistoryCommand(Verb replay, Action& action);  // The history of one's own job.
void AddReplayJobCommand(Verb replay, Action& action);      // One recorded job.
void AddReplayPaperCommand(Verb replay, Action& action);    // The figures and claims of the paper.
void AddReplaySweepCommand(Verb replay, Action& action);    // Many jobs and settings at once.

}  // namespace zeus::cli
