#include "apps/zeus/commands.h"

namespace zeus::cli {

void AddReplayCommand(Verb app, Action& action) {
  const Verb verb = app.AddVerb(
      "replay", "Compare policies on recorded or simulated jobs, without running anything");
  verb.RequireVerb();
  AddReplayClusterCommand(verb, action);
  AddReplayJobCommand(verb, action);
  AddReplayPaperCommand(verb, action);
  AddReplayHistoryCommand(verb, action);
  AddReplaySweepCommand(verb, action);
}

}  // namespace zeus::cli
