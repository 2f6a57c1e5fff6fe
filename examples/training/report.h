#pragma once

#include "examples/training/options.h"
#include "examples/training/run.h"
#include "zeus/base/json_fwd.h"

namespace zeus::examples {

// Prints, after the lines of the epochs, the profile, the chosen setting, and what the training
// used.
void PrintOutcome(const Outcome& outcome, const Options& options);

// Returns the whole outcome; docs/training-examples.md describes the fields.
Json ToJson(const Outcome& outcome, const Options& options);

}  // namespace zeus::examples
