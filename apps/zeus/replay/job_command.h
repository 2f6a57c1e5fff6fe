#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

// zeus replay job
void AddReplayJobCommand(Verb replay, Action& action);

}  // namespace zeus::cli
