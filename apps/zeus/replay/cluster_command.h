#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

// `zeus replay cluster`: what the jobs of a cluster would take under each policy. `replay` is the
// verb above it.
void AddReplayClusterCommand(Verb replay, Action& action);

}  // namespace zeus::cli
