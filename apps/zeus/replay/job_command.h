#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

// `zeus replay job`: compares policies on one job. `replay` is the parent verb.
void AddReplayJobCommand(Verb replay, Action& action);

}  // namespace zeus::cli
