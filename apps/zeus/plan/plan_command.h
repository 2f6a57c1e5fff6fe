#pragma once

#include "apps/zeus/command.h"

namespace zeus::cli {

// `zeus plan`: clocks for the computations of a pipeline.
void AddPlanCommand(CLI::App& app, Action& action);

}  // namespace zeus::cli
