#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

// `zeus plan`: clocks for the computations of a pipeline.
void AddPlanCommand(Verb app, Action& action);

}  // namespace zeus::cli
