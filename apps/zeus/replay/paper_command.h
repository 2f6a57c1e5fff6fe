#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

// `zeus replay paper`: reproduces the figures, tables and claims of the Zeus paper. `replay` is the
// parent verb.
void AddReplayPaperCommand(Verb replay, Action& action);

}  // namespace zeus::cli
