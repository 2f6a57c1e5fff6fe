#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

// `zeus replay cluster`: compares what the jobs of a cluster would use under each policy. `replay`
// is the parent verb.
void AddReplayClusterCommand(Verb replay, Action& action);

}  // namespace zeus::cli
