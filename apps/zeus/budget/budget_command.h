#pragma once

#include "apps/zeus/commands.h"

namespace zeus::cli {

// Declares `zeus budget` and the verbs below it: watts that many GPUs share.
void AddBudgetCommand(Verb app, Action& action);

void AddBudgetSimulateCommand(Verb budget, Action& action);  // More GPUs under one budget.

}  // namespace zeus::cli
