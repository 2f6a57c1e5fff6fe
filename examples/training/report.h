#pragma once

#include "examples/training/options.h"
#include "examples/training/run.h"
#include "zeus/base/json_fwd.h"

namespace zeus::examples {

// What follows the lines of the epochs: the profile, what was chosen, and what it all cost.
void PrintOutcome(const Outcome& outcome, const Options& options);

// Everything; docs/training-examples.md names the fields.
Json ToJson(const Outcome& outcome, const Options& options);

}  // namespace zeus::examples
