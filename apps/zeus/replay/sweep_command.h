#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

// zeus replay sweep
void AddReplaySweepCommand(CLI::App& replay, Action& action);

}  // namespace zeus::cli
