#pragma once

#include "apps/zeus/command_line.h"
#include "apps/zeus/commands.h"

namespace zeus::cli {

// Declares `config show`: which values options have, and where each comes from. Call it after all
// verbs that have options; `line` must outlive the action.
void AddConfigCommand(CommandLine& line, Action& action);

}  // namespace zeus::cli
