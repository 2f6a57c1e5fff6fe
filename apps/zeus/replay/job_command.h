#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

// zeus replay job
void AddReplayJobCommand(CLI::App& replay, Action& action);

}  // namespace zeus::cli
