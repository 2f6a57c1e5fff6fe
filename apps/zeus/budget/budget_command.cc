#include "apps/zeus/budget/budget_command.h"

#include "apps/zeus/budget/server_commands.h"

namespace zeus::cli {

void AddBudgetCommand(Verb app, Action& action) {
  const Verb verb = app.AddVerb("budget", "Watts that many GPUs share");
  verb.RequireVerb();
  AddBudgetServerCommands(verb, action);
  AddBudgetSimulateCommand(verb, action);
}

}  // namespace zeus::cli
