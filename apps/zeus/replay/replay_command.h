#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

// `zeus replay`: policies compared on recorded jobs.
void AddReplayCommand(CLI::App& app, Action& action);

}  // namespace zeus::cli
