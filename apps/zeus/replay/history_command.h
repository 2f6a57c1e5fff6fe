#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

// `zeus replay history`: what would have come of one's own job? `replay` is the verb above it.
void AddReplayHistoryCommand(Verb replay, Action& action);

}  // namespace zeus::cli
