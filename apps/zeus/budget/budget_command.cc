#include "apps/zeus/budget/budget_command.h"

namespace zeus::cli {

void AddBudgetCommand(Verb app, Action& action) {
  const Verb verb = app.AddVerb("budget", "Watts that many GPUs share");
  verb.RequireVerb();
  AddBudgetSimulateCommand(verb, action);
}

}  // namespace zeus::cli
