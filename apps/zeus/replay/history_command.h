#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

// `zeus replay history`: estimates how a recorded job would have fared under other conditions.
// `replay` is the parent verb.
void AddReplayHistoryCommand(Verb replay, Action& action);

}  // namespace zeus::cli
