#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

// `zeus replay paper`: the figures, tables and claims of the Zeus paper. `replay` is the verb above
// it.
void AddReplayPaperCommand(Verb replay, Action& action);

}  // namespace zeus::cli
