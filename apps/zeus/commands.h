#pragma once

#include "apps/zeus/command.h"

// The verbs of `zeus`. Each function declares the options of its verb below `app` and, when the
// verb is chosen, sets `action`.
namespace zeus::cli {

// Verbs that run a command: `tail` holds its words and must outlive the app.
void AddProfileCommand(Verb app, Action& action, const CommandTail& tail);
void AddRunCommand(Verb app, Action& action, const CommandTail& tail);
void AddTrainCommand(Verb app, Action& action, const CommandTail& tail);

void AddCalibrateCommand(Verb app, Action& action);  // How the sensors of GPUs behave.
void AddDiffCommand(Verb app, Action& action);       // Comparison of two runs.
void AddDoctorCommand(Verb app, Action& action);     // Sensors and knobs of this machine.
void AddJobCommand(Verb app, Action& action);        // Recurring jobs in a database.
void AddKnobsCommand(Verb app, Action& action);      // Limits and clocks that were changed.
void AddLlmCommand(Verb app, Action& action);        // Language models that answer requests.
void AddMonitorCommand(Verb app, Action& action);    // The power of this machine, live.
void AddPlanCommand(Verb app, Action& action);       // Clocks for the computations of a pipeline.
void AddServeCommand(Verb app, Action& action);      // The job server.
void AddSimCommand(Verb app, Action& action);        // Simulated nodes.

// Policies compared on recorded jobs, and the verbs below `zeus replay`.
void AddReplayCommand(Verb app, Action& action);
void AddReplayClusterCommand(Verb replay, Action& action);  // Jobs of a whole cluster.
void AddReplayHistoryCommand(Verb replay, Action& action);  // The history of one's own job.
void AddReplayJobCommand(Verb replay, Action& action);      // One recorded job.
void AddReplayPaperCommand(Verb replay, Action& action);    // The figures and claims of the paper.
void AddReplaySweepCommand(Verb replay, Action& action);    // Many jobs and settings at once.

}  // namespace zeus::cli
