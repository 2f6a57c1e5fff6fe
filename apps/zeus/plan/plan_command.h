#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

// `zeus plan`: plans clocks for the computations of a pipeline.
void AddPlanCommand(Verb app, Action& action);

}  // namespace zeus::cli
