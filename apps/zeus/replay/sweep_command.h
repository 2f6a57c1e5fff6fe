#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

// `zeus replay sweep`: compares policies over many settings. `replay` is the parent verb.
void AddReplaySweepCommand(Verb replay, Action& action);

}  // namespace zeus::cli
