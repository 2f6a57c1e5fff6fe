#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

// zeus replay job | sweep: what would policies make of recorded jobs?
void AddReplayCommand(CLI::App& app, Action& action);

}  // namespace zeus::cli
