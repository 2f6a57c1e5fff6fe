#pragma once

#include "apps/zeus/commands.h"

namespace zeus::cli {

// Declares the verbs below `zeus budget` that ask a zeus serve: show, set, target and export.
void AddBudgetServerCommands(Verb budget, Action& action);

}  // namespace zeus::cli
