#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

// zeus replay sweep
void AddReplaySweepCommand(Verb replay, Action& action);

}  // namespace zeus::cli
