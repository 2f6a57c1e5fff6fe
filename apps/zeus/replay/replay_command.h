#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

// `zeus replay`: compares policies on recorded jobs.
void AddReplayCommand(Verb app, Action& action);

}  // namespace zeus::cli
