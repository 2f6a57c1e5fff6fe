#pragma once

#include "apps/zeus/commands.h"

namespace zeus::cli {

// Declares `backup`, `restore` and `prune` below `zeus job`.
void AddBackupCommands(Verb job, Action& action);

}  // namespace zeus::cli
